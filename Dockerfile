# Weirlab with its live tools.
#   docker build -t weirlab .
#   docker run --rm weirlab run incast
#   docker run --rm --privileged weirlab emulate --rate 20mbit -- ping -c 3 198.18.0.2
FROM rust:1-slim-bookworm AS wheel
# The base image's release fixes the versions.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /build && /build/bin/pip install --no-cache-dir "maturin>=1.9,<2"
COPY . /src
WORKDIR /src
RUN /build/bin/maturin build --release --locked --strip --compatibility linux --out /wheels

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv iproute2 ethtool iperf3 iputils-ping traceroute tcpdump openssh-client slirp4netns \
    && rm -rf /var/lib/apt/lists/*
COPY --from=wheel /wheels /wheels
RUN python3 -m venv /opt/weirlab && /opt/weirlab/bin/pip install --no-cache-dir "$(echo /wheels/*.whl)[cluster,sensitivity,view]" && rm -r /wheels
ENV PATH=/opt/weirlab/bin:$PATH
WORKDIR /work
ENTRYPOINT ["weir"]
CMD ["--help"]
