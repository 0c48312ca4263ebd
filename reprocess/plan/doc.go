// Package plan decides what deploy, adopt and drop do, before they do it: which version or deployment a job file
// becomes (Stage), what a replay begins with and what readers would lose by its flip (Survey), what adopting or
// dropping would change. Commands print the same values that the controller in package reprocess acts by.
package plan
