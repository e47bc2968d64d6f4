"use strict";
// The nodes and edges that Cytoscape is given: colours, sizes, label lines, and the way a tree's edges take.
ragkit.elements = (isTree, model) => {
  const { nodes, edges, labelOf, line, colour, theme, mix, text } = ragkit;
  const largest = nodes.reduce((most, node) => Math.max(most, node.size), 0);
  const alike = nodes.every((node) => node.size === largest);
  const heaviest = edges.reduce((most, edge) => Math.max(most, edge.weight), 0) || 1;

  function dataOf(key) {
    if (isTree && model.isMore(key))
      return {
        id: `n${key}`,
        key,
        colour: theme("muted"),
        fill: theme("surface"),
        strong: theme("surface"),
        short: "",
      };
    const paint = colour(key);
    const short = text.wrap(labelOf(key), 130, 12, isTree ? 1 : 2);
    return {
      id: `n${key}`,
      key,
      colour: paint,
      fill: mix(paint, theme("surface"), 0.14),
      strong: mix(paint, theme("surface"), 0.34),
      short: short.join("\n"),
      shortWidth: Math.max(0, ...short.map((line) => text.width(line, 12))),
      shortHeight: 15 * short.length,
      diameter: alike ? 22 : 12 + 30 * Math.sqrt(nodes[key].size / largest),
    };
  }

  function edge(e, extra = {}, classes = "") {
    const given = edges[e];
    const marks = [given.lit ? "lit" : "", given.directed && !isTree ? "directed" : "", classes].join(" ");
    const width = isTree ? 1.5 : 1 + 3 * (given.weight / heaviest);
    const label = given.label ? text.wrap(line(given.label), 150, 11, 2).join("\n") : "";
    return {
      group: "edges",
      data: { id: `e${e}`, source: `n${given.source}`, target: `n${given.target}`, width, label, ...extra },
      classes: marks,
    };
  }

  // Bend points in Cytoscape's terms: how far along the straight line, and how far beside it.
  function bends(from, to, points) {
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const square = dx * dx + dy * dy || 1;
    const length = Math.sqrt(square);
    return {
      weights: points.map((p) => ((p.x - from.x) * dx + (p.y - from.y) * dy) / square),
      distances: points.map((p) => (-(p.x - from.x) * dy + (p.y - from.y) * dx) / length),
    };
  }

  function node(key) {
    return { group: "nodes", data: dataOf(key), classes: nodes[key].lit ? "lit" : "" };
  }

  // A card of a tree and the edge that it hangs on.
  function card(box, parent) {
    const more = model.isMore(box.key);
    const marks = { inner: !more && model.childCount(box.key) > 0, closed: box.closed, more, lit: nodes[box.key]?.lit };
    const made = {
      group: "nodes",
      data: { ...dataOf(box.key), width: box.width, height: box.height, card: box.lines.join("\n") },
      position: { x: box.x, y: box.y },
      classes: Object.keys(marks)
        .filter((mark) => marks[mark])
        .join(" "),
    };
    if (!parent) return [made];
    const points = route(box, parent);
    const way = points.length ? bends(parent, box, points) : {};
    const classes = points.length ? "routed" : "";
    if (box.edge !== null) return [made, edge(box.edge, way, classes)];
    const ends = { id: `m${box.key}`, source: `n${box.parent}`, target: `n${box.key}` };
    return [made, { group: "edges", data: { ...ends, width: 1.5, label: "", ...way }, classes }];
  }

  // Down from the parent, along under it, down the rail, then into the card; in an outline just down the rail.
  function route(box, parent) {
    const { rail, bus } = box.route;
    if (rail === box.x && Math.abs(rail - parent.x) < 1) return [];
    const aside = rail === box.x ? [] : [{ x: rail, y: box.y }];
    if (bus === null) return [{ x: rail, y: parent.y + parent.height / 2 + 4 }, ...aside];
    return [{ x: parent.x, y: bus }, { x: rail, y: bus }, ...aside];
  }

  return { dataOf, node, edge, card };
};
