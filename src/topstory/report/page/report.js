"use strict";
const specs = JSON.parse(document.getElementById("specs").textContent);
const touch = matchMedia("(pointer: coarse)").matches;
const dark = matchMedia("(prefers-color-scheme: dark)");
const printing = matchMedia("print");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Traces and layouts use the colour "ink" for the page's own text colour.
const inked = (value, ink) => {
  if (Array.isArray(value)) return value.map((each) => inked(each, ink));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inked(each, ink)]));
  return value === "ink" ? ink : value;
};

const layoutOf = (spec) => {
  const [ink, grid, paper] = ["--soft", "--grid", "--paper"].map(colour);
  const axis = (given) => ({
    gridcolor: grid, linecolor: grid, zerolinecolor: grid, automargin: true, ...given,
    title: { standoff: 8, ...(given || {}).title },
  });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { family: getComputedStyle(document.body).fontFamily, size: printing.matches ? 9 : 12, color: ink },
    hoverlabel: { bgcolor: paper, bordercolor: grid, font: { color: colour("--ink") } },
    margin: { l: 52, r: 12, t: 12, b: 44 }, dragmode: touch ? false : "zoom",
    ...spec.layout, xaxis: axis(spec.layout.xaxis), yaxis: axis(spec.layout.yaxis),
  };
};

const sections = [...document.querySelectorAll(".figure")];
const shown = (section, trace) => {
  const meta = trace.meta || {};
  const size = section.querySelector(".sizes input:checked");
  const button = meta.policy && section.querySelector(`button[data-policy="${meta.policy}"]`);
  const pressed = !button || button.getAttribute("aria-pressed") === "true";
  return pressed && (!size || meta.size === undefined || meta.size === Number(size.value));
};
// In print a plot keeps the size it was drawn at; this one fits A4 and Letter with margins.
const onPaper = (section) =>
  section.querySelector(".panels-1") ? { width: 670, height: 270 } : { width: 325, height: 230 };
const draw = (section) => {
  const ink = colour("--soft");
  [...section.querySelectorAll(".plot")].forEach((place, i) => {
    const spec = specs[section.id][i];
    const data = spec.data.map((trace) => ({ ...inked(trace, ink), visible: shown(section, trace) }));
    const size = printing.matches ? onPaper(section) : { autosize: true };
    Plotly.react(place, data, { ...layoutOf(spec), ...size }, { responsive: true, displaylogo: false, displayModeBar: false });
  });
};
const drawAll = () => sections.forEach(draw);

for (const section of sections) {
  section.addEventListener("change", () => draw(section));
  section.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-policy]");
    if (!button) return;
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    draw(section);
  });
}
drawAll();
dark.addEventListener("change", drawAll);
printing.addEventListener("change", drawAll);

const paper = document.getElementById("paper-switch");
if (paper) {
  const follow = () => document.body.classList.toggle("with-paper", paper.checked);
  paper.addEventListener("change", follow);
  follow();
}

const tip = document.getElementById("tip");
if (tip) {
  const showTip = (event) => {
    const cell = event.target.closest && event.target.closest("[data-tip]");
    tip.hidden = !cell;
    if (!cell) return;
    tip.textContent = cell.dataset.tip;
    const box = cell.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left), innerWidth - tip.offsetWidth - 8);
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
  };
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, showTip);
  for (const kind of ["scroll", "focusout"]) document.addEventListener(kind, () => (tip.hidden = true), true);
}
document.documentElement.dataset.drawn = "true";
