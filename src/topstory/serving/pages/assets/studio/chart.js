// Small charts as SVG. A chart fills its box, and is drawn anew when the box changes.

import { h, s } from "../dom.js";

const PAD = { top: 14, right: 118, bottom: 26, left: 50 };

function ticks(low, high, wanted) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((each) => span / each <= wanted);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(at);
  return found;
}

// lines: [{ name, kind, points: [[x, y]], dash }]; kind is a class of the style sheet.
export function lineChart(box, { lines, x, y, label, from }) {
  const draw = () => {
    const width = Math.max(260, box.clientWidth);
    const narrow = width < 520;
    const height = (box.clientHeight || 260) - (narrow ? 46 : 0);
    const pad = { ...PAD, right: narrow ? 12 : PAD.right };
    const shown = lines.filter((line) => line.points.length > 1);
    const all = shown.flatMap((line) => line.points);
    if (!all.length) {
      box.replaceChildren(h("p", { class: "muted waiting" }, "Nothing to draw yet: visits appear here after a few seconds."));
      return;
    }
    const xs = all.map((p) => p[0]);
    const low = Math.min(from ?? Infinity, ...xs);
    const high = Math.max(...xs);
    const top = Math.max(...all.map((p) => p[1])) * 1.08 || 1;
    const X = (value) => pad.left + ((value - low) / (high - low || 1)) * (width - pad.left - pad.right);
    const Y = (value) => height - pad.bottom - (value / top) * (height - pad.top - pad.bottom);
    const path = (points) => points.map((p, i) => `${i ? "L" : "M"}${X(p[0]).toFixed(1)} ${Y(p[1]).toFixed(1)}`).join("");
    // Names beside the ends of the lines, pushed apart where they would overlap.
    const ends = shown.map((line) => ({ line, at: Y(line.points.at(-1)[1]) })).sort((a, b) => a.at - b.at);
    for (let pass = 0; pass < 2; pass++) ends.forEach((end, i) => { if (i && end.at - ends[i - 1].at < 15) end.at = ends[i - 1].at + 15; });
    const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      ticks(0, top, 4).map((at) => [
        s("line", { class: "grid", x1: pad.left, x2: width - pad.right, y1: Y(at), y2: Y(at) }),
        s("text", { class: "tick", x: pad.left - 8, y: Y(at) + 4, "text-anchor": "end" }, y(at))]),
      x(low, high, narrow ? 3 : 6).map(([at, words]) => s("text", { class: "tick", x: X(at), y: height - 6, "text-anchor": "middle" }, words)),
      shown.map((line) => s("path", { class: `line ${line.kind}`, d: path(line.points), "stroke-dasharray": line.dash ?? null })),
      narrow ? null : ends.map(({ line, at }) => s("text", { class: `end ${line.kind}`, x: width - pad.right + 8, y: Math.min(at + 4, height - 2) }, line.name)));
    const legend = narrow ? h("ul", { class: "legend" }, shown.map((line) => h("li", { class: line.kind }, line.name))) : null;
    box.replaceChildren(...[svg, legend].filter(Boolean));
  };
  box.draw = draw;
  if (!box.watched) {
    box.watched = new ResizeObserver(() => box.draw());
    box.watched.observe(box);
  } else draw();
}

// An interval on a line with a mark at zero: [low, high] around a value.
export function intervalBar(box, { value, interval, words }) {
  if (!interval) return box.replaceChildren();
  const width = Math.max(200, box.clientWidth);
  const reach = Math.max(Math.abs(interval[0]), Math.abs(interval[1]), 0.1) * 1.15;
  const left = Math.min(interval[0], 0) < 0 ? -reach : -0.12 * reach;
  const X = (at) => 6 + ((at - left) / (reach - left)) * (width - 12);
  box.replaceChildren(s("svg", { width, height: 40, viewBox: `0 0 ${width} 40`, role: "img", "aria-label": words },
    s("line", { class: "grid", x1: 6, x2: width - 6, y1: 14, y2: 14 }),
    s("line", { class: "zero", x1: X(0), x2: X(0), y1: 4, y2: 24 }),
    s("line", { class: "range", x1: X(interval[0]), x2: X(interval[1]), y1: 14, y2: 14 }),
    s("circle", { class: "mean", cx: X(value), cy: 14, r: 5 }),
    s("text", { class: "tick", x: X(0), y: 38, "text-anchor": left < 0 && X(0) < 40 ? "start" : "middle" }, "as random")));
}

// Dots with intervals, one below the other; `reference` is a line across them.
export function dotChart(box, { rows, reference, format, label }) {
  const draw = () => {
    const width = Math.max(260, box.clientWidth);
    const narrow = width < 620; // names stand above their dots
    const side = narrow ? 10 : Math.min(380, 20 + 7 * Math.max(...rows.map((row) => row.name.length)));
    const step = narrow ? 46 : 34;
    const height = rows.length * step + 34;
    const values = rows.flatMap((row) => [row.value, ...(row.interval ?? [])]);
    if (reference) values.push(reference.value);
    const low = Math.min(...values, 0);
    const high = Math.max(...values) * 1.06;
    const X = (at) => side + ((at - low) / (high - low || 1)) * (width - side - 24);
    box.replaceChildren(s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
      ticks(low, high, narrow ? 4 : 6).map((at) => [
        s("line", { class: "grid", x1: X(at), x2: X(at), y1: 6, y2: height - 24 }),
        s("text", { class: "tick", x: X(at), y: height - 8, "text-anchor": X(at) < 22 ? "start" : "middle" }, format(at))]),
      reference ? s("line", { class: "zero", x1: X(reference.value), x2: X(reference.value), y1: 0, y2: height - 22 }) : null,
      rows.map((row, i) => {
        const at = i * step + (narrow ? 36 : 22);
        return s("g", { class: row.best ? "best" : "" },
          s("text", { class: "name", x: 0, y: narrow ? at - 13 : at + 4 }, row.name),
          row.interval ? s("line", { class: "range", x1: X(row.interval[0]), x2: X(row.interval[1]), y1: at, y2: at }) : null,
          s("circle", { class: "mean", cx: X(row.value), cy: at, r: row.best ? 6 : 5 }));
      })));
  };
  new ResizeObserver(draw).observe(box); // which also calls it now
}
