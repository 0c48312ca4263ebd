// Package pg opens PostgreSQL and gives every other package the same few tools: a pool whose statements survive a
// transaction pooler, transactions at a stated isolation, leases by claim, and the migrations of the control schema.
//
// SQL texts name the control schema kappactl; a pool opened with another schema puts that name in their place.
// Nothing here keeps a session: no LISTEN, no named prepared statement, no session lock, timeouts by SET LOCAL.
package pg
