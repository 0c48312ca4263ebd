// Package checks runs the checks of a job file on a version and compares versions key by key.
//
// A run of checks is one transaction at one snapshot:
//
//  1. A check that needs two versions needs them at the same offsets: a Barrier stops both there.
//  2. The transaction takes its snapshot and the barrier is released, so that the versions continue while checks run.
//  3. The views "candidate", "live" and "previous" are created as temporary views; then the transaction is read-only.
//  4. Each check runs in a savepoint of its own, inside a function with the rights of the checks role, which cannot be
//     left again (fence.go).
//  5. The transaction is rolled back: nothing that a check did remains.
//
// The outcome of a check is pass, fail or "no answer", with a typed reason. Whatever PostgreSQL reports about a check
// is its answer; an error is returned only when another run may succeed.
package checks
