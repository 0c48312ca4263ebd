// Package abtest will split readers between versions of a job: experiments with stable assignment, and bandits that move
// the weights by reward. Its arithmetic is in abtest/policy; abtest/simulate runs it on synthetic rewards.
//
// What it builds on is in place: several versions of a job follow their topics at the same time, and the serving view is
// written from a contract that does not depend on the version behind it.
package abtest
