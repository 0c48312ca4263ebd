// Package reach determines which objects SQL of a job file reads and calls, with PostgreSQL's own parser. It creates a
// view of the SQL in a transaction that is rolled back, and reads from the catalogs what the view uses. The SQL is
// neither run nor planned.
//
//	serve.columns, serve.where   only the columns of the query, and functions of their arguments
//	checks                       also what the role that wrote the job file may read itself
//
// A view does not restrict this: its relations are read with the rights of the view's owner, the agent, and its
// functions run with the rights of whichever role reads it, including the agent.
package reach
