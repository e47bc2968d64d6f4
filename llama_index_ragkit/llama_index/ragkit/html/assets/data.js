"use strict";
// What the page was given. The first line of the data is the page with what every node needs to be drawn; each further
// line is the rest of one node, which is read when it is asked for: few of a large index are ever looked at.
const ragkit = (() => {
  const [first, ...lines] = document.getElementById("data").textContent.split("\n");
  const data = JSON.parse(first);
  const { groups: kinds, nodes: columns, edges: drawn } = data.view;
  const groups = new Map(kinds.map((group) => [group.name, group]));
  const none = { id: "", label: "", text: "", details: [] };
  let last = [-1, none];

  function rest(i) {
    if (last[0] === i) return last[1];
    const read = { ...none, ...JSON.parse(lines[i]) };
    if (typeof read.label === "number") read.label = read.text.slice(-read.label); // how much of its end
    last = [i, read];
    return read;
  }

  class Node {
    constructor(at) {
      this.at = at;
      this.group = kinds[columns.groups?.[at]]?.name ?? "";
      this.level = columns.levels?.[at] ?? 0;
      this.size = columns.sizes?.[at] ?? 1;
      this.lit = false;
    }
    get id() {
      return rest(this.at).id;
    }
    get label() {
      return rest(this.at).label;
    }
    get text() {
      return rest(this.at).text;
    }
    get score() {
      return rest(this.at).score;
    }
    get details() {
      return rest(this.at).details;
    }
  }

  const nodes = lines.map((_, i) => new Node(i));
  columns.lit.forEach((i) => (nodes[i].lit = true));

  // Edges have the number of their ends; a grid has none.
  const edges = [];
  const { ends = [], weights, labels = {}, lit = [], directed = [] } = drawn ?? {};
  for (let e = 0; 2 * e < ends.length; e++)
    edges.push({
      source: ends[2 * e],
      target: ends[2 * e + 1],
      weight: weights?.[e] ?? 1,
      label: labels[e] ?? "",
      lit: false,
      directed: false,
    });
  lit.forEach((e) => (edges[e].lit = true));
  directed.forEach((e) => (edges[e].directed = true));

  // The edges of every node, one after the other: those of node i are number starts[i] to starts[i + 1].
  const starts = new Uint32Array(nodes.length + 1);
  const each = (action) =>
    edges.forEach((edge, e) => {
      action(edge.source, e);
      if (edge.target !== edge.source) action(edge.target, e);
    });
  each((i) => (starts[i + 1] += 1));
  for (let i = 0; i < nodes.length; i++) starts[i + 1] += starts[i];
  const incident = new Uint32Array(starts[nodes.length]);
  const filled = starts.slice();
  each((i, e) => (incident[filled[i]++] = e));
  const edgesOf = (i) => [...incident.subarray(starts[i], starts[i + 1])];
  const degree = (i) => starts[i + 1] - starts[i];

  return { data, nodes, edges, edgesOf, degree, groups };
})();
