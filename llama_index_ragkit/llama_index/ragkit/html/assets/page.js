"use strict";
// The frame: heading, search, buttons, legend, keys; and what is selected, searched and lit.
(() => {
  const { data, nodes, edges, labelOf, element, line, brief, groups, debounce } = ragkit;
  const anyLit = nodes.some((node) => node.lit) || edges.some((edge) => edge.lit);
  const members = new Map();
  nodes.forEach(({ group }) => members.set(group, (members.get(group) ?? 0) + 1));
  let selected = null;
  let query = "";
  let hits = [];
  let hit = -1;
  let litOnly = anyLit && data.view.kind === "force"; // a graph begins with the answer, all else behind it is pale

  const search = element("input", {
    type: "search",
    placeholder: "Search  ( / )",
    title: data.covers,
    "aria-label": `Search the ${nodes.length} nodes of this page; Enter goes to the next hit`,
    autocomplete: "off",
    spellcheck: "false",
  });
  const count = element("output", { class: "count" });
  const tools = element("div", { class: "tools" });
  const stage = element("div", {
    class: "stage",
    role: data.view.kind === "grid" ? undefined : "img",
    "aria-label": `${data.title}: a drawing of ${nodes.length} nodes. Search and the lists beside it reach each of them.`,
  });
  const status = element("p", { class: "status" });
  const tip = element("div", { class: "tip", hidden: true });
  const side = element("aside", { "aria-label": "Details" });
  const frame = element(
    "main",
    {},
    element("div", { class: "picture" }, stage, element("footer", {}, legend(), status)),
    side,
  );
  const heading = element(
    "div",
    { class: "title" },
    element("h1", { dir: "auto" }, data.title),
    data.subtitle ? element("p", { dir: "auto" }, data.subtitle) : null,
  );
  document.body.append(
    element("header", {}, heading, element("div", { class: "find" }, search, count), tools),
    frame,
    tip,
  );

  function legend() {
    const rows = [...groups.values()]
      .filter((group) => members.has(group.name))
      .map((group) => {
        const dot = element("span", { class: "dot" });
        dot.style.backgroundColor = group.colour;
        return element(
          "li",
          {},
          dot,
          element("span", { dir: "auto", title: group.label }, group.label),
          element("small", {}, members.get(group.name).toLocaleString("en")),
        );
      });
    if (anyLit)
      rows.push(element("li", {}, element("span", { class: "dot ring" }), element("span", { dir: "auto" }, data.lit)));
    if (data.covers) rows.push(element("li", { class: "note", dir: "auto" }, data.covers));
    rows.push(...data.legend.map((text) => element("li", { class: "note", dir: "auto" }, text)));
    return element("ul", { class: "legend", "aria-label": "Legend" }, ...rows);
  }

  function place(event) {
    const gap = 14;
    const left =
      event.clientX + gap + tip.offsetWidth > innerWidth ? event.clientX - gap - tip.offsetWidth : event.clientX + gap;
    const top =
      event.clientY + gap + tip.offsetHeight > innerHeight
        ? event.clientY - gap - tip.offsetHeight
        : event.clientY + gap;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
  }

  function hoverText(text, event, more = "") {
    tip.hidden = !text || !event;
    if (tip.hidden) return;
    tip.replaceChildren(element("strong", { dir: "auto" }, text), more ? element("span", { dir: "auto" }, more) : "");
    place(event);
  }

  function hover(i, event) {
    if (i === null) return hoverText("", null);
    const text = brief(nodes[i].text, 260);
    return nodes[i].label ? hoverText(labelOf(i), event, text) : hoverText(text || labelOf(i), event);
  }

  // The panels first: how much room they leave decides what the picture opens.
  const panels = ragkit.panels(side, { select: (i) => (select(i), i !== null && view.reveal(i)) });
  const view = ragkit.view(stage, { select, hover, hoverText, status: (text) => (status.textContent = text) });

  function select(i) {
    selected = i;
    view.select(i);
    panels.show(i, view.actions(i), i === null ? [] : view.edgesOf(i), data.view.kind === "tree");
    attend();
  }

  // What stands out: the selected node and its neighbours, else the hits, else what is lit.
  function attend() {
    if (selected !== null) return view.setFocus(view.family(selected));
    if (query) return view.setFocus(new Set(hits));
    return view.setFocus(litOnly ? new Set(nodes.map((_, i) => i).filter((i) => nodes[i].lit)) : null);
  }

  const folded = [];
  function find() {
    query = search.value.trim().toLowerCase();
    if (query && !folded.length)
      nodes.forEach((node, i) =>
        folded.push(`${node.label} ${labelOf(i)} ${node.text} ${node.id}`.toLowerCase()),
      );
    hits = query ? nodes.map((_, i) => i).filter((i) => folded[i].includes(query)) : [];
    hit = -1;
    count.textContent = query ? String(hits.length) : "";
    if (selected !== null) select(null);
    panels.showHits(hits, query);
    attend();
  }

  function nextHit(step) {
    if (search.value.trim().toLowerCase() !== query) find();
    if (!hits.length) return;
    hit = (hit + step + hits.length) % hits.length;
    count.textContent = `${hit + 1} / ${hits.length}`;
    select(hits[hit]);
    view.reveal(hits[hit]);
  }

  search.addEventListener("input", debounce(120, find));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape") {
      hoverText("", null);
      if (selected !== null) return select(null);
      search.value = "";
      search.blur();
      find();
    }
    return undefined;
  });

  function button(name, title, act, extra = {}) {
    const made = element(
      "button",
      { type: "button", title, "aria-label": title, onclick: () => act(made), ...extra },
      name,
    );
    tools.append(made);
    return made;
  }
  if (anyLit) {
    const toggle = (made) => {
      litOnly = !litOnly;
      made.setAttribute("aria-pressed", String(litOnly));
      view.setLit(litOnly);
      attend();
    };
    button(line(data.lit, 40), "Let only this stand out", toggle, { "aria-pressed": String(litOnly) });
  }
  view.buttons.forEach(([name, title, act]) => button(name, title, act));
  button("Fit", "Show everything", () => view.fit());
  button("−", "Zoom out", () => view.zoom(1 / 1.3));
  button("+", "Zoom in", () => view.zoom(1.3));

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.retheme());
  new ResizeObserver(debounce(50, () => view.resize())).observe(stage);
  if (litOnly) view.setLit(true);
  attend();
  document.documentElement.dataset.ready = "true";
})();
