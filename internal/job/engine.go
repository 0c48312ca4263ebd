package job

// Engine is the kind of work that computes a job's results.
type Engine string

// SQL is kappactl's own engine, which runs the query of the job file. It is the zero value: job files name no engine.
const SQL Engine = ""
