// Keys: j and k open the next and the previous question, / moves to the search field.
"use strict";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing) return;
  const wanted = { j: "a[rel~=next]", ArrowRight: "a[rel~=next]", k: "a[rel~=prev]", ArrowLeft: "a[rel~=prev]" }[event.key];
  if (wanted) {
    if (event.key.startsWith("Arrow") && event.target.closest(".scroll")) return;
    document.querySelector(wanted)?.click();
  } else if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  }
});
