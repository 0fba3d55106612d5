"use strict";
// Live progress: follows each operation that runs, and opens the page again when one has ended.

for (const bar of document.querySelectorAll("[data-follow]")) {
  const source = new EventSource(bar.dataset.follow);
  source.addEventListener("progress", event => {
    const told = JSON.parse(event.data);
    bar.querySelector("progress").value = told.percentage;
    bar.querySelector("[data-words]").textContent = told.words;
    if (told.has_ended) {
      source.close();
      location.reload();
    }
  });
  addEventListener("pagehide", () => source.close());
}
