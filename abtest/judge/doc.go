// Package judge decides what happens next in an experiment: a pure function of what one look has found, of the run's
// settings, and of what earlier looks have left. Each decision is stored with its inputs, from which it can be computed
// again.
package judge
