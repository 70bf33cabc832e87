// Filters the table of questions: by text, by type and by the outcome of each provider.
"use strict";
const form = document.querySelector("form.filters");
if (form) {
  const rows = Array.from(document.querySelectorAll("#questions tbody tr"));
  // not the memories: a word of a question is in those of many others
  const searched = "summary, dl, .id, td[data-label]";
  const texts = rows.map((row) => Array.from(row.querySelectorAll(searched), (one) => one.textContent).join(" ").toLowerCase());
  const outcomes = Array.from(document.querySelectorAll("select[data-column]"));
  const shown = document.querySelector("#shown");
  const filter = () => {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const type = form.elements.type ? form.elements.type.value : "";
    let count = 0;
    rows.forEach((row, place) => {
      const matches =
        words.every((word) => texts[place].includes(word)) &&
        (!type || row.dataset.type === type) &&
        outcomes.every((one) => !one.value || row.children[Number(one.dataset.column)].dataset.marks.split(" ").includes(one.value));
      row.hidden = !matches;
      count += matches;
    });
    shown.textContent = count + " of " + rows.length + " " + shown.dataset.noun;
  };
  form.hidden = false;
  outcomes.forEach((one) => {
    one.hidden = false;
    one.addEventListener("change", filter);
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
}
