package pg

import (
	"context"
	"net"
	"time"
)

// A connection whose peer has disappeared is closed after about half a minute: sent data must be acknowledged by then,
// and an idle connection is probed.
const (
	probeAfter = 15 * time.Second
	probeEvery = 5 * time.Second
	probes     = 3
	unheard    = probeAfter + probes*probeEvery
)

// dial opens a connection that detects the loss of its peer, even during a long statement.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeAfter, Interval: probeEvery, Count: probes},
		Control:         giveUpUnacknowledged,
	}
	return d.DialContext(ctx, network, address)
}
