// Package readiness decides how a version is doing: from samples of its positions and of the brokers' offsets it
// derives lag, rates, verdicts and warnings. It uses no clock, database or broker, so all of it is tested with tables.
//
//	Sample ── Track.Observe ──> Sample with lag, stalls and rates ── Judge ──> Judgement of a partition
//	Judgements ── Overall ──> Judgement of the version: ready, holding, or the worst partition's
package readiness
