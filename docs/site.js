// Search: entries of the API whose name is what was typed come first, above the matches of the text.
// `api/names.js`, which the build writes, sets `apiNames`: [full name, address from the site's root].
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".md-search-result__list")
  const query = document.querySelector(".md-search__input")
  if (!list || !query || typeof apiNames === "undefined") return
  const root = JSON.parse(document.getElementById("__config").textContent).base

  function rank(name, typed) {
    const lower = name.toLowerCase()
    if (lower === typed) return 0
    if (lower.endsWith("." + typed)) return 1 + lower.split(".").length / 100
    if (lower.includes("." + typed) && typed.length > 2) return 2 + lower.length / 100
    return Infinity
  }

  function show() {
    const typed = query.value.trim().toLowerCase().replace(/\(\)?$/, "").replace(/^(ag|tf|tensorflow)\./, "")
    const found = typed ? apiNames.map(([name, address]) => [rank(name.slice(3), typed), name, address]) : []
    const best = found.filter(([place]) => place < Infinity).sort(([a], [b]) => a - b).slice(0, 5)
    const items = best.map(([, name, address]) => {
      const item = document.createElement("li")
      item.className = "md-search-result__item api-name"
      const link = item.appendChild(document.createElement("a"))
      link.className = "md-search-result__link"
      link.href = `${root}/${address}`
      const article = link.appendChild(document.createElement("article"))
      article.className = "md-search-result__article md-typeset"
      article.dataset.mdScore = 1e9 // Enter opens the link with the highest score
      article.appendChild(document.createElement("code")).textContent = name
      return item
    })
    observer.disconnect()
    list.querySelectorAll(".api-name").forEach(item => item.remove())
    list.prepend(...items)
    observer.observe(list, { childList: true })
  }

  const observer = new MutationObserver(show)
  observer.observe(list, { childList: true })
  query.addEventListener("input", show)
})
