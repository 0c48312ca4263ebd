// Package abtest splits the readers of a job between several of its versions.
//
// An experiment has arms: versions of the job that are caught up, the live one first, which is the control. While it
// runs, the serving view shows each reader one arm (serving.Split): PostgreSQL asks a function once for each
// statement, by the subject that the reader has set. That function reads one row of kappactl.route; a change of
// weights is an update of that row.
//
//	start → running ⇄ paused → ended, by stop, or by the flip that makes a version live
//
// A run is done as a flip is: by an agent, for a request, in one transaction that holds the rows, the history, the
// answer and the view as its last statement. So there is nothing between the route and the view that another agent
// would have to finish. An arm is protected while readers read it: reprocess asks before it takes a version away.
//
// The arithmetic is in abtest/policy; abtest/simulate runs it on synthetic rewards.
package abtest
