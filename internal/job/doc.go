// Package job holds the words that all packages share (Name, Number, Ref, Partition, Range, Phase, Verdict, ExitCode) and
// the job file.
//
// Parse reads a job file into a Spec with its defaults filled in, or returns Problems: every fault of the file at once, each with
// line, column, an excerpt, the cause and the cure. A Spec remembers where its values stand, so that whoever finds a
// fault later (internal/query in the SQL, reprocess at a deploy) can say it at that place: Spec.Problem, Spec.ProblemAt.
// Spec.Hash says whether two job files give the same results.
//
// The package imports the standard library and the YAML parser only.
package job
