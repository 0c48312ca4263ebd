// Package simulate runs an experiment on synthetic rewards, with the assignment, policies and decisions of real ones:
// it shows how long a test would take, how a bandit would move its weights, and how often either is wrong.
//
// Rewards do not drift here, so that counts are pooled over the changes of weights.
package simulate
