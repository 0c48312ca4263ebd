// Package reprocess decides which version of a job readers see, and takes a new one there: stage, replay, build, catch
// up, check, flip, keep the old one warm, roll back, retire.
//
// The state is rows of PostgreSQL (job, version, deployment, request, event, observation); this package alone writes
// them. Commands write what is wanted (Store.Stage, Store.Ask) and read how it goes (Store.Status, Store.Deployment).
// One Controller per version, in whichever agent holds the deployment's claim, does every step. The work itself
// (reading Kafka, tables, the view) is behind the ports in ports.go.
//
//	staged → replaying → building → catching_up ⇄ caught_up → verified → live ⇄ standby → retiring → retired
//	side ends from staged … verified: aborted, failed
//
// Rules that every step keeps:
//   - A step is one UPDATE conditioned on the phase it expects and on the claim of who does it, or it is safe to repeat.
//     So a process may die anywhere and another goes on from the rows.
//   - The flip is one transaction that holds the view, the phases, the history and the answer to who asked.
//   - What cannot be read is unknown, and unknown is never ready.
//   - Readers never lose results without having agreed to exactly that loss.
package reprocess
