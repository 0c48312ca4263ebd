// Package ledger is the SQL on the control tables of reprocess: job, version, deployment, request, event, observation,
// lag_point and dropped_job. It alone writes them.
//
// A version moves from phase to phase by Next, a deployment from state to state by its own table; every write is one
// UPDATE conditioned on the phase or state in which the row was read, and on the claim of who writes. A row that is
// elsewhere by then gives ErrLost, ErrMoved or ErrGone, and nothing is written.
package ledger
