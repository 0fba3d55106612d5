"use strict";
// Keys of the review queue. An element with data-key="a" is what the key "a" presses; `?` in a dialog shows them all.

const isTyping = target => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const pressed = document.querySelector(`.review [data-key="${CSS.escape(event.key)}"]`);
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
  const field = document.getElementById(pressed.dataset.focus || "");
  if (field && pressed.parentElement.open) field.focus();
});

// What cannot be stored comes back as a page with the reason: it is shown, not dropped.
document.addEventListener("htmx:beforeSwap", event => {
  if (![409, 422].includes(event.detail.xhr.status)) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

// The next proposal is read out, and keys go on from there.
document.addEventListener("htmx:afterSettle", () => document.querySelector("#proposal")?.focus({ preventScroll: true }));
