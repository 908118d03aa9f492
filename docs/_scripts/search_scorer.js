// How the site's search ranks: Sphinx's own scores, more for pages that answer a question than for lists of names, and more
// for a page whose title has the words of the query.
var Scorer = {
  score: (result) => {
    const [document, title, , , score] = result;
    const ranks = [
      [/^(guide|cookbook)\/(?!index)/, 4],
      [/^(install|tour)$/, 4],
      [/^(index|glossary)$/, 3],
      [/^gallery\/\w+\/(?!index)/, 2],
      [/^(results\/numbered|develop\/(changelog|contributing|architecture)|genindex|sg_execution_times)/, -6],
      [/^(reference\/names|gallery\/sg_)/, -4],
      [/^(guide|cookbook|gallery|reference)/, -2], // tables of contents
    ];
    const rank = ranks.find(([pattern]) => pattern.test(document));
    const query = new URLSearchParams(location.search).get("q") || "";
    const words = query.toLowerCase().match(/\w{3,}/g) || [];
    const held = words.filter((word) => title.toLowerCase().includes(word.slice(0, 5))).length;
    return score + (rank ? rank[1] : 0) + (words.length ? (6 * held) / words.length : 0);
  },
  objNameMatch: 16, // the full name of a class or function comes first
  objPartialMatch: 3,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
