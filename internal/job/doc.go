// Package job defines the terms that all packages share (Name, Number, Ref, Partition, Range, Phase, Verdict, ExitCode)
// and the job file.
//
// Parse reads a job file into a Spec with its defaults filled in, or returns Problems: every fault of the file at once,
// each with line, column, an excerpt, the cause and the fix. A Spec remembers the places of its values, so that a fault
// found later (by internal/query in the SQL, by reprocess at a deploy) can be reported there: Spec.Problem,
// Spec.ProblemAt. Spec.Hash tells whether two job files give the same results.
//
// The package imports the standard library and the YAML parser only.
package job
