# Weirlab with its live tools. Results go to the directory of the caller, and belong to the caller:
#   docker build -t weirlab .
#   docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/work" weirlab run incast
#   docker run --rm --privileged weirlab emulate --rate 20mbit -- ping -c 3 198.18.0.2
FROM rust:1-slim-bookworm AS build
# The base image's release fixes the versions.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /build && /build/bin/pip install --no-cache-dir "maturin>=1.9,<2"
COPY . /src
WORKDIR /src
RUN /build/bin/maturin build --release --locked --strip --compatibility linux --out /wheels
RUN python3 -m venv /opt/weirlab && /opt/weirlab/bin/pip install --no-cache-dir --constraint constraints.txt "$(echo /wheels/*.whl)[cluster,optimise,sensitivity,trex,view]"

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 iproute2 ethtool iperf3 iputils-ping traceroute tcpdump openssh-client slirp4netns \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/weirlab /opt/weirlab
ENV PATH=/opt/weirlab/bin:$PATH LANG=C.UTF-8
# Any user can write here.
WORKDIR /work
RUN chmod 1777 .
ENTRYPOINT ["weir"]
CMD ["--help"]
