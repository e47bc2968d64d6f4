"use strict";
// What every part of the page shares: small tools, and the only way elements are made.
// Texts come from anywhere, so they enter the page as text nodes only, never as markup.
Object.assign(ragkit, (() => {
  const { nodes, groups } = ragkit;

  function element(tag, options = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(options)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  }

  // One printable line: no control characters, no direction overrides that would garble what stands beside it.
  function line(text, length = 400) {
    const flat = text.slice(0, 4 * length).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\s]+/gu, " ");
    const plain = flat
      .replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "")
      .trim()
      .slice(0, length);
    return plain.toWellFormed ? plain.toWellFormed() : plain;
  }

  // Without the marks of Markdown: headings, quotations, lists, emphasis, code, links.
  function unmarked(text) {
    return text
      .replace(/^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+)/gmu, "")
      .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/gu, "$1")
      .replace(/(\*\*|__|`+)(?=\S)([^\n]*?\S)\1/gu, "$2")
      .replace(/(^|[^\p{L}\p{N}*_])([*_])(?=\S)([^*_\n]*?\S)\2(?![\p{L}\p{N}])/gmu, "$1$3");
  }

  // The beginning of a long text, with a sign that there is more.
  function brief(text, length) {
    const start = line(unmarked(text.slice(0, 4 * length + 400)), length + 1);
    return start.length > length ? start.slice(0, length).trimEnd() + "…" : start;
  }

  const labels = new Map();
  function labelOf(i) {
    if (!labels.has(i)) {
      const { label, text, id } = nodes[i];
      labels.set(i, line(unmarked(label)) || brief(text, 160) || line(id) || "(no text)");
    }
    return labels.get(i);
  }

  function number(value) {
    if (typeof value !== "number" || Number.isInteger(value)) return String(value);
    return String(Number(value.toPrecision(4)));
  }

  function theme(name) {
    return getComputedStyle(document.documentElement)
      .getPropertyValue("--" + name)
      .trim();
  }

  // `share` of the colour a, the rest b; both as #rrggbb.
  function mix(a, b, share) {
    const part = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
    const channel = (at) => Math.round(part(a, at) * share + part(b, at) * (1 - share));
    return "#" + [1, 3, 5].map((at) => channel(at).toString(16).padStart(2, "0")).join("");
  }

  function debounce(wait, action) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(action, wait);
    };
  }

  const colour = (i) => groups.get(nodes[i].group)?.colour ?? "#8c8c8c";
  return { labelOf, element, line, unmarked, brief, number, theme, mix, debounce, colour };
})());
