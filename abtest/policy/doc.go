// Package policy holds the arithmetic of experiments between versions: which arm a subject reads, how the weights of
// arms follow their rewards, estimates of the difference between arms, and the verdict of the test.
//
// Everything here is a function of its arguments: no clock, no randomness, no database. Weights come from quadrature
// instead of sampling, so the same counts always give the same weights.
package policy
