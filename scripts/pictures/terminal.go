package main

import (
	"context"
	"fmt"
	"image/color"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// terminal is a pseudo-terminal with a program in it and an emulator behind it.
type terminal struct {
	master *os.File
	cmd    *exec.Cmd
	drawn  chan struct{}
	done   sync.WaitGroup

	mu  sync.Mutex // guards emu
	emu *vt.Emulator
}

// start runs a command on a terminal of this size.
func start(ctx context.Context, width, height int, dir string, env []string, program string, args ...string) (*terminal, error) {
	t := &terminal{drawn: make(chan struct{}, 1), emu: vt.NewEmulator(width, height), cmd: exec.CommandContext(ctx, program, args...)}
	t.emu.SetDefaultBackgroundColor(color.Black)
	t.cmd.Dir, t.cmd.Env = dir, append(os.Environ(), append([]string{"TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8"}, env...)...)
	t.cmd.Cancel = func() error { return t.cmd.Process.Signal(syscall.SIGTERM) }
	var err error
	if t.master, err = pty.StartWithSize(t.cmd, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)}); err != nil { //nolint:gosec // small
		return nil, fmt.Errorf("start %s on a terminal: %w", program, err)
	}
	t.done.Go(t.draw)
	go func() { _, _ = io.Copy(t.master, t.emu) }() // the terminal's answers, until the program is gone
	return t, nil
}

func (t *terminal) draw() {
	buf := make([]byte, 1<<16)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		_, _ = t.emu.Write(buf[:n]) // it draws what it understands
		t.mu.Unlock()
		select {
		case t.drawn <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// await waits until the screen's text is as wanted.
func (t *terminal) await(ctx context.Context, what string, wanted func(string) bool) error {
	for {
		t.mu.Lock()
		text := t.emu.String()
		t.mu.Unlock()
		if wanted(text) {
			return nil
		}
		select {
		case <-t.drawn:
		case <-ctx.Done():
			return fmt.Errorf("the screen never showed %s:\n%s", what, text)
		}
	}
}

func (t *terminal) press(keys string) error {
	_, err := t.master.WriteString(keys)
	return err
}

// save writes the lines from, from+1, … before to of the screen as a picture.
func (t *terminal) save(path, title, about string, from, to int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := screen{width: t.emu.Width(), height: to - from, at: func(x, y int) *uv.Cell { return t.emu.CellAt(x, from+y) }}
	if err := os.WriteFile(path, []byte(svg(s, title, about)), 0o644); err != nil { //nolint:gosec // readable by all users
		return fmt.Errorf("write a picture: %w", err)
	}
	return nil
}

// end ends the program and waits for it.
func (t *terminal) end() {
	_ = t.cmd.Process.Signal(syscall.SIGTERM) // when it has ended already there is nothing to end
	timer := time.AfterFunc(20*time.Second, func() { _ = t.cmd.Process.Kill() })
	defer timer.Stop()
	_ = t.cmd.Wait() // how it ended does not matter: the picture is made
	_ = t.master.Close()
	t.done.Wait()
}

// lineOf is the number of the first line with these words, or -1.
func lineOf(text, words string) int {
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(line, words) {
			return i
		}
	}
	return -1
}
