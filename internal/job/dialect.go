package job

// The names of the two SQL dialects of a job file, for Problem.Dialect.
const (
	DuckDBSQL  = "DuckDB SQL"     // query
	PostgreSQL = "PostgreSQL SQL" // serve.* and checks
)
