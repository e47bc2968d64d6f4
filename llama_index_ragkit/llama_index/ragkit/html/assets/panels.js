"use strict";
// What stands beside the picture: the selected node with its whole text, the hits of a search, the panels of the page.
ragkit.panels = (side, on) => {
  const { data, nodes, labelOf, element, line, unmarked, brief, number, groups, colour } = ragkit;
  const MOST = 60;
  const detail = element("section", { class: "detail", hidden: true, "aria-live": "polite" });
  const hits = element("section", { class: "hits", hidden: true, "aria-live": "polite" });
  const fixed = element("div", { class: "fixed" }, ...data.panels.map(panel));
  side.append(detail, hits, fixed);

  function swatch(i) {
    const dot = element("span", { class: "dot" });
    dot.style.backgroundColor = colour(i);
    return dot;
  }

  function link(i, extra = "") {
    const made = element("button", {
      type: "button",
      class: nodes[i].lit ? "link lit" : "link",
      onclick: () => on.select(i),
    });
    made.append(
      swatch(i),
      element("span", { dir: "auto" }, labelOf(i)),
      extra ? element("small", { dir: "auto" }, brief(extra, 80)) : "",
    );
    return made;
  }

  function table(rows) {
    return element(
      "table",
      {},
      ...rows.map(([name, value]) =>
        element(
          "tr",
          {},
          element("th", { scope: "row", dir: "auto" }, name),
          element("td", { dir: "auto" }, value === null ? "–" : number(value)),
        ),
      ),
    );
  }

  function panel(given) {
    const body = given.kind === "facts" ? table(given.rows) : results(given.items);
    const empty = (given.rows ?? given.items).length ? null : element("p", { class: "none" }, "Nothing here.");
    return element("section", {}, element("h2", { dir: "auto" }, given.title), body, empty);
  }

  // The first of a long list; the others on demand.
  function results(items) {
    const made = element("ol", { class: "results" }, ...items.slice(0, MOST).map(result));
    if (items.length <= MOST) return made;
    const all = () => made.replaceChildren(...items.map(result));
    const name = `Show all ${items.length.toLocaleString("en")}`;
    made.append(element("li", {}, element("button", { type: "button", class: "action", onclick: all }, name)));
    return made;
  }

  function result(item) {
    const i = item.node ?? undefined;
    const label = line(unmarked(item.label || "")) || (i === undefined ? "" : (groups.get(nodes[i].group)?.label ?? labelOf(i)));
    const head = element("span", { class: "head" }, element("strong", { dir: "auto" }, label));
    if (i !== undefined) head.prepend(swatch(i));
    if (item.score !== null) head.append(element("span", { class: "score" }, number(item.score)));
    const tag = i === undefined ? "div" : "button";
    const made = element(
      tag,
      { class: "result", ...(i === undefined ? {} : { type: "button", "data-node": i, onclick: () => on.select(i) }) },
      head,
    );
    if (item.snippet) made.append(element("span", { class: "snippet", dir: "auto" }, brief(item.snippet, 320)));
    return element("li", {}, made);
  }

  function list(title, links) {
    if (!links.length) return null;
    const rest = links.length > MOST ? [element("li", { class: "none" }, `and ${links.length - MOST} more`)] : [];
    const items = links.slice(0, MOST).map(([i, extra]) => element("li", {}, link(i, extra)));
    return element(
      "div",
      {},
      element("h3", {}, `${title} (${links.length})`),
      element("ul", { class: "links" }, ...items, ...rest),
    );
  }

  function show(i, actions, edges, isTree) {
    side
      .querySelectorAll("[data-node]")
      .forEach((item) => item.classList.toggle("current", Number(item.dataset.node) === i));
    detail.hidden = i === null;
    if (i === null) return detail.replaceChildren();
    const node = nodes[i];
    const into = edges
      .filter((edge) => edge.target === i && edge.source !== i)
      .map((edge) => [edge.source, edge.label]);
    const out = edges.filter((edge) => edge.source === i && edge.target !== i).map((edge) => [edge.target, edge.label]);
    const facts = [["id", node.id]];
    if (node.group) facts.unshift(["kind", groups.get(node.group).label]);
    if (node.level) facts.push(["level", node.level]);
    if (node.score !== undefined) facts.push(["score", node.score]);
    const buttons = actions.map(([name, act]) =>
      element("button", { type: "button", class: "action", onclick: () => (act(), on.select(i)) }, name),
    );
    const undirected = !isTree && edges.every((edge) => !edge.directed);
    detail.replaceChildren(
      ...[
        element(
          "div",
          { class: "bar" },
          swatch(i),
          element("h2", { dir: "auto" }, labelOf(i)),
          element(
            "button",
            {
              type: "button",
              class: "close",
              "aria-label": "Clear the selection (Esc)",
              onclick: () => on.select(null),
            },
            "×",
          ),
        ),
        buttons.length ? element("div", { class: "actions" }, ...buttons) : null,
        node.text
          ? element(
              "div",
              { class: "text", dir: "auto", tabindex: 0 },
              node.text.toWellFormed ? node.text.toWellFormed() : node.text,
            )
          : null,
        table([...facts, ...node.details]),
        ...(undirected
          ? [list("Linked to", [...into, ...out])]
          : [list(isTree ? "Under" : "From", into), list(isTree ? "Children" : "To", out)]),
      ].filter(Boolean),
    );
    detail.scrollIntoView({ block: "nearest" });
    return undefined;
  }

  // The words around the first hit, with the hit marked.
  function excerpt(i, query) {
    const text = line(nodes[i].text, 20000);
    const at = text.toLowerCase().indexOf(query);
    if (at < 0) return "";
    const start = Math.max(0, at - 50);
    const made = element("span", { class: "snippet", dir: "auto" }, (start ? "…" : "") + text.slice(start, at));
    made.append(
      element("mark", {}, text.slice(at, at + query.length)),
      text.slice(at + query.length, at + query.length + 90) + "…",
    );
    return made;
  }

  function showHits(found, query) {
    hits.hidden = !query;
    fixed.hidden = Boolean(query);
    if (!query) return hits.replaceChildren();
    const items = found.slice(0, MOST).map((i) => {
      const head = element("span", { class: "head" }, swatch(i), element("strong", { dir: "auto" }, labelOf(i)));
      const made = element(
        "button",
        { type: "button", class: "result", "data-node": i, onclick: () => on.select(i) },
        head,
      );
      made.append(excerpt(i, query));
      return element("li", {}, made);
    });
    const title =
      found.length === 0
        ? "No node has this text"
        : `${found.length} ${found.length === 1 ? "node has" : "nodes have"} this text`;
    if (found.length > MOST)
      items.push(element("li", { class: "none" }, `and ${found.length - MOST} more: Enter goes through all`));
    return hits.replaceChildren(element("h2", {}, title), element("ol", { class: "results" }, ...items));
  }

  return { show, showHits };
};
