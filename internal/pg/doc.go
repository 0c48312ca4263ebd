// Package pg opens PostgreSQL and gives every other package the same tools: a pool that works behind a transaction
// pooler, transactions at a stated isolation level, leases by claim, and the migrations of the control schema.
//
// SQL texts name the control schema kappactl; a pool opened with another schema replaces that name.
// Nothing here depends on a session: no LISTEN, no named prepared statements, no session locks; timeouts use SET LOCAL.
package pg
