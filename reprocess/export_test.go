package reprocess

import "time"

// WarnFrom makes status warn of transactions that are open for old and of tables with this many dead rows.
func (s *Store) WarnFrom(old time.Duration, dead int64) { s.old, s.dead = old, dead }

// SetHook calls f at every fault point of the controller.
func (c *Controller) SetHook(f func(point string)) { c.hook = f }
