"use strict";
// A graph that opens in part: which nodes are shown. The lit ones and the heaviest first, so that a graph of
// thousands begins as something that can be read.
ragkit.force = () => {
  const { nodes, edges, edgesOf, degree } = ragkit;
  const START = 300;
  const sizes = Float64Array.from(nodes, (node) => node.size);
  const ranking = Uint32Array.from(nodes.keys()).sort(
    (a, b) => nodes[b].lit - nodes[a].lit || sizes[b] - sizes[a] || degree(b) - degree(a) || a - b,
  );
  const rank = new Uint32Array(nodes.length);
  ranking.forEach((i, place) => (rank[i] = place));
  const shown = nodes.length <= 1.3 * START ? new Set(ranking) : beginning();

  function neighbours(i) {
    const found = new Set(edgesOf(i).map((e) => (edges[e].source === i ? edges[e].target : edges[e].source)));
    found.delete(i);
    return found;
  }

  // The lit nodes, then always the first in rank among the neighbours of those that are in: a connected piece.
  function beginning() {
    const chosen = new Set();
    const edge = new Set();
    let next = 0;
    while (chosen.size < START) {
      let best = -1;
      if (edge.size && !nodes[ranking[next]].lit) {
        for (const i of edge) if (best < 0 || rank[i] < rank[best]) best = i;
      } else {
        while (chosen.has(ranking[next])) next += 1;
        best = ranking[next];
      }
      edge.delete(best);
      chosen.add(best);
      for (const i of neighbours(best)) if (!chosen.has(i)) edge.add(i);
      while (next < ranking.length - 1 && chosen.has(ranking[next])) next += 1;
    }
    return chosen;
  }

  return {
    shown,
    neighbours,
    rank: (i) => rank[i],
    hidden: (i) => [...neighbours(i)].filter((j) => !shown.has(j)).sort((a, b) => rank[a] - rank[b]),
    show: (list) => list.forEach((i) => shown.add(i)),
    showAll: () => nodes.forEach((_, i) => shown.add(i)),
  };
};
