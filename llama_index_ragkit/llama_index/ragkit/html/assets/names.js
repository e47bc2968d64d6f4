"use strict";
// Which names are drawn where there is no room for all: as many as fit without touching, the important first,
// always at a size that can be read.
ragkit.names = (cy, isTree, state) => {
  const { text, debounce } = ragkit;
  const SIZE = 12;
  const MOST = 160;
  // Where a name may stand at its disc, the best place first: to the right or left, below or above.
  const PLACES = [
    [0, 1],
    [0, -1],
    [1, 0],
    [-1, 0],
  ];
  const touches = (a, b) => a[0] < b[2] && a[2] > b[0] && a[1] < b[3] && a[3] > b[1];

  // The room of the node itself on the screen.
  function body(node, at, zoom) {
    const [half, tall] = isTree
      ? [node.data("width") / 2, node.data("height") / 2]
      : [node.data("diameter") / 2, node.data("diameter") / 2];
    return [at.x - half * zoom, at.y - tall * zoom, at.x + half * zoom, at.y + tall * zoom];
  }

  function chosen() {
    const zoom = cy.zoom();
    // The cards of a tree carry their own text as long as that can be read.
    if (isTree && SIZE * zoom >= 7) return new Map();
    const [width, height] = [cy.width(), cy.height()];
    const seen = cy
      .nodes()
      .toArray()
      .filter((node) => !node.hasClass("more"))
      .map((node) => ({ node, key: node.data("key"), at: node.renderedPosition() }))
      .map((item) => ({ ...item, body: body(item.node, item.at, zoom) }))
      .filter(({ at }) => at.x > 0 && at.x < width && at.y > 0 && at.y < height);
    const urgent = ({ node, key }) =>
      4 * (key === state.selected) + 2 * (state.focus?.has(key) ?? false) + node.hasClass("lit");
    seen.forEach((item) => (item.urgency = urgent(item)));
    seen.sort((a, b) => b.urgency - a.urgency || state.weight(b.key) - state.weight(a.key));
    const named = new Map();
    for (const { node, key, at, urgency } of seen) {
      if (named.size >= MOST) break;
      if (state.focus && !state.focus.has(key)) continue;
      const [half, tall] = [node.data("shortWidth") / 2 + 4, node.data("shortHeight") / 2];
      const gap = isTree ? 0 : (node.data("diameter") / 2) * zoom + 2;
      const taken = [...named.values()].map((place) => place.box);
      // A name at a disc is whole; that of a lit or selected node may hide discs that are neither.
      const fits = ({ box }) =>
        (isTree || (box[0] >= 0 && box[1] >= 0 && box[2] <= width && box[3] <= height)) &&
        !taken.some((other) => touches(box, other)) &&
        !seen.some((o) => o.key !== key && (!urgency || (o.urgency && !isTree)) && touches(box, o.body));
      const place = (isTree ? [[0, 0]] : PLACES)
        .map(([x, y]) => ({ x, y, at: [at.x + x * (gap + half), at.y + y * (gap + tall)] }))
        .map(({ x, y, at: [left, top] }) => ({ x, y, box: [left - half, top - tall, left + half, top + tall] }))
        .find(fits);
      if (place) named.set(node.id(), place);
    }
    return named;
  }

  function draw() {
    const zoom = cy.zoom();
    const named = chosen();
    const style = ({ x, y }) => ({
      "font-size": SIZE / zoom,
      "text-outline-width": 3 / zoom,
      "text-halign": ["left", "center", "right"][x + 1],
      "text-valign": ["top", "center", "bottom"][y + 1],
      "text-margin-x": (3 * x) / zoom,
      "text-margin-y": (3 * y) / zoom,
    });
    const styled = Object.keys(style({ x: 0, y: 0 })).join(" ");
    cy.batch(() => {
      cy.nodes(".named").forEach((node) => {
        if (!named.has(node.id())) node.removeClass("named").removeStyle(styled);
      });
      named.forEach((place, id) => cy.getElementById(id).addClass("named").style(style(place)));
      // What is lit stays visible however far away it is.
      cy.nodes(".lit").style({
        "underlay-padding": Math.max(6, 3 / zoom),
        "underlay-opacity": zoom < 0.5 ? 0.7 : 0.22,
      });
      cy.edges(".lit").style("width", Math.max(3, 2 / zoom));
      cy.edges(".named").removeClass("named").removeStyle("font-size");
      const edges =
        state.selected === null ? cy.edges(".lit") : cy.getElementById(`n${state.selected}`).connectedEdges();
      const taken = [...named.values()].map(({ box }) => box);
      edges.slice(0, 60).forEach((edge) => {
        const label = edge.data("label");
        if (!label || isTree) return;
        const [from, to] = [edge.source().renderedPosition(), edge.target().renderedPosition()];
        const room = Math.hypot(from.x - to.x, from.y - to.y) - 40;
        const needed = Math.max(...label.split("\n").map((part) => text.width(part, SIZE - 1)));
        const [x, y, tall] = [(from.x + to.x) / 2, (from.y + to.y) / 2, 8 * label.split("\n").length];
        const box = [x - needed / 2 - 4, y - tall, x + needed / 2 + 4, y + tall];
        if (needed >= room || taken.some((other) => touches(box, other))) return;
        taken.push(box);
        edge.addClass("named").style("font-size", (SIZE - 1) / zoom);
      });
    });
  }

  return debounce(70, draw);
};
