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
});

document.addEventListener("click", event => {
  if (event.target.closest(".tick-all")) {
    const boxes = [...document.querySelectorAll(".waiting input[type=checkbox]")];
    const isTicked = boxes.every(box => box.checked);
    for (const box of boxes) box.checked = !isTicked;
  }
  const opener = event.target.closest("[data-opens]");
  if (!opener || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const form = document.getElementById(opener.dataset.opens);
  form.hidden = !form.hidden;
  (form.hidden ? opener : form.querySelector("#field-content")).focus();
});

// What cannot be stored comes back as a page with the reason: it is shown, not dropped.
document.addEventListener("htmx:beforeSwap", event => {
  if (![409, 422].includes(event.detail.xhr.status)) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

// The next proposal is read out, and keys go on from there.
const focusProposal = () => document.querySelector("#proposal")?.focus({ preventScroll: true });
document.addEventListener("htmx:afterSettle", focusProposal);
if (new URLSearchParams(location.search).has("done")) focusProposal();
