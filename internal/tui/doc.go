// Package tui is the terminal interface of `kappactl watch`, and the plain lines that it prints where there is no
// terminal.
//
//	Source ──fetch──▶ message ──Update──▶ Model ──View──▶ frame of height lines, none wider than the window
//	   ▲                                    │
//	   └──────────── commands.go ◀──────────┘
//
// The Model is pure: Update and View do no input or output, read no clock and know no environment. Everything that does
// is in commands.go, behind the one small interface Source. Each page asks with a generation; changing the page starts
// a new one, and replies of an earlier one are dropped, so that a slow answer never overwrites what is looked at now.
//
// A look that fails changes nothing on the screen but the header, which then says how old the data is; the next look is
// the reconnection. A panic in Update or View ends the program like an error does, after the terminal was restored.
package tui
