// The lists of the viewer: what is typed is found at once, what is new appears, and the chosen are remembered. Without
// this, links and buttons do the same, a page at a time.
"use strict";
(() => {
  const found = () => document.getElementById("found");
  const form = document.querySelector("form.query");
  const isList = location.pathname === "/";

  // --- what is chosen for comparison ---

  const KEY = "weirlab-chosen";
  const chosen = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));
  const MOST = 20;

  const showChosen = () => {
    for (const box of document.querySelectorAll("input[name=r]")) box.checked = chosen.has(box.value);
    const line = document.querySelector(".chosen");
    if (!line) return;
    const many = chosen.size;
    line.classList.toggle("some", many > 0);
    line.querySelector("button").disabled = many < 2 || many > MOST;
    line.querySelector("output").textContent = many === 0 ? "Choose 2 to 20 results of one kind."
      : many === 1 ? "1 chosen; choose another one." : many > MOST ? `${many} chosen; at most ${MOST} are compared.` : `${many} chosen.`;
    if (many && !line.querySelector(".clear")) {
      const clear = Object.assign(document.createElement("button"), { type: "button", className: "clear", textContent: "Choose none" });
      clear.addEventListener("click", () => { chosen.clear(); remember(); });
      line.append(" ", clear);
    } else if (!many) line.querySelector(".clear")?.remove();
  };

  const remember = () => {
    sessionStorage.setItem(KEY, JSON.stringify([...chosen]));
    showChosen();
  };

  document.addEventListener("change", (event) => {
    if (event.target.name !== "r") return;
    if (event.target.checked) chosen.add(event.target.value);
    else chosen.delete(event.target.value);
    remember();
  });

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form.rows")) return;
    event.preventDefault();
    location.href = `/compare?${new URLSearchParams([...chosen].map((each) => ["r", each]))}`;
  });

  // --- finding ---

  let asked = 0;
  const show = async (address, { isNew }) => {
    const number = ++asked;
    let text;
    try {
      const reply = await fetch(address, { headers: { Accept: "text/html" } });
      text = await reply.text();
    } catch {
      return; // the server has ended; the page stays as it is
    }
    if (number !== asked) return;
    const page = new DOMParser().parseFromString(text, "text/html");
    const next = page.getElementById("found");
    if (!next) return;
    const isOpen = document.querySelector(".facets")?.open;
    const focused = document.activeElement?.closest?.("#found") ? document.activeElement.getAttribute("href") ?? document.activeElement.value : null;
    found().replaceWith(document.adoptNode(next));
    if (isOpen !== undefined && document.querySelector(".facets")) document.querySelector(".facets").open = isOpen;
    if (isNew) {
      history.replaceState(null, "", address);
      for (const old of form.querySelectorAll("input[type=hidden]")) old.remove();
      form.prepend(...page.querySelectorAll("form.query input[type=hidden]"));
      document.querySelector(".forms")?.replaceWith(page.querySelector(".forms"));
    }
    if (focused !== null) {
      [...document.querySelectorAll("#found a, #found input")].find((each) => (each.getAttribute("href") ?? each.value) === focused)?.focus();
    }
    showChosen();
  };

  const addressOfForm = () => {
    const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
    return pairs.length ? `${location.pathname}?${new URLSearchParams(pairs)}` : location.pathname;
  };
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => show(addressOfForm(), { isNew: true }), 150);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show(addressOfForm(), { isNew: true });
  });

  // --- what is new ---

  if (isList) {
    let events = null;
    let isBusy = false;
    const listen = () => {
      if (document.hidden) {
        events?.close();
        events = null;
      } else if (!events) {
        events = new EventSource("/events");
        events.addEventListener("index", async (event) => {
          if (isBusy || event.data === found().dataset.generation) return;
          isBusy = true;
          await show(location.href, { isNew: false });
          isBusy = false;
        });
      }
    };
    document.addEventListener("visibilitychange", listen);
    listen();
  }
  const narrow = matchMedia("(max-width: 800px)");
  const fold = () => document.querySelector(".facets")?.toggleAttribute("open", !narrow.matches);
  fold();
  narrow.addEventListener("change", fold); // a wide screen has no heading that would open them
  showChosen();
  document.body.dataset.ready = "";
})();
