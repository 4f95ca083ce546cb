export { default as Sigma } from "sigma";
export { default as Graph } from "graphology";
export { default as MiniSearch } from "minisearch";
