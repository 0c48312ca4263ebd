package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	handoverWithin = 5 * time.Minute
	// An agent that joins has its share when it follows two in five of the partitions. Half of them is even.
	fairShare = 0.4
)

// handover starts a second agent and measures how long it takes to get its share, then kills the first one and measures
// how long it takes until the second has all of its work.
func (b *bench) handover(ctx context.Context, c *crowd, h *hosted, conn *pgx.Conn) error {
	first := h.agents[0]
	var old string
	err := conn.QueryRow(ctx, `SELECT id FROM kappactl.agent WHERE pid = $1`, first.cmd.Process.Pid).Scan(&old)
	if err != nil {
		return fmt.Errorf("find the agent's row: %w", err)
	}
	began := time.Now()
	second, err := b.serve(ctx, h.dsn)
	if err != nil {
		return err
	}
	h.agents = append(h.agents, second)
	c.Join, err = answered(ctx, began, conn, `SELECT avg(CASE WHEN owner <> $1 THEN 1 ELSE 0 END) >= $2::float8
		FROM kappactl.position`, old, fairShare)
	if err != nil {
		return fmt.Errorf("a second agent joins: %w", err)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		return err
	}
	<-first.done //nolint:errcheck // it was killed
	h.agents = h.agents[1:]
	c.Takeover, err = answered(ctx, time.Now(), conn, `SELECT
		NOT EXISTS (SELECT FROM kappactl.position WHERE owner IS NULL OR owner = $1) AND
		NOT EXISTS (SELECT FROM kappactl.deployment WHERE owner = $1)`, old)
	if err != nil {
		return fmt.Errorf("the first agent was killed: %w", err)
	}
	return nil
}

// answered returns the seconds from began until a question is answered with true.
func answered(ctx context.Context, began time.Time, conn *pgx.Conn, question string, args ...any) (float64, error) {
	for time.Since(began) < handoverWithin {
		var yes bool
		if err := conn.QueryRow(ctx, question, args...).Scan(&yes); err != nil {
			return 0, err
		}
		if yes {
			return time.Since(began).Seconds(), nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, errors.New("not within " + handoverWithin.String())
}
