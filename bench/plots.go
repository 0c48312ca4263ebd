package main

import (
	"fmt"
	"strings"
)

// replayPlot shows the rates of the rounds.
func (r *result) replayPlot() string {
	var bars []bar
	for _, name := range r.Order {
		if strings.Contains(name, "flights") {
			continue // another topic
		}
		rate := of(r.Rounds[name], measure.rate)
		bars = append(bars, bar{name, million(rate) + "/s", rate, strings.HasPrefix(name, "kappactl")})
	}
	return barChart("Records a second, from start to served", bars)
}

// scalePlot shows time a record and memory over x.
func scalePlot(title string, all []scale, x func(scale) float64) string {
	per := panel{title: "µs a record, start to served", format: "%.2f"}
	memory := panel{title: "peak memory of the agent, MB", format: "%.0f"}
	for _, s := range all {
		label := short(x(s))
		per.points = append(per.points, point{x(s), s.Served / float64(s.Records) * 1e6, label})
		memory.points = append(memory.points, point{x(s), float64(s.Peak) / 1e6, label})
	}
	return lineChart(title, []panel{per, memory})
}

// jobsPlot shows what an agent uses over the number of its versions, while there is nothing to read.
func (r *result) jobsPlot() string {
	rate := panel{title: "transactions a second", format: "%.0f"}
	cores := panel{title: "cores of the agent", format: "%.2f"}
	memory := panel{title: "memory of the agent, MB", format: "%.0f"}
	for _, c := range r.Jobs {
		x := float64(c.Jobs)
		rate.points = append(rate.points, point{x, c.Transactions, short(x)})
		cores.points = append(cores.points, point{x, c.CPU, short(x)})
		memory.points = append(memory.points, point{x, float64(c.Memory) / 1e6, short(x)})
	}
	return lineChart("Live versions with nothing to read", []panel{rate, cores, memory})
}

// livePlot shows how soon records are visible.
func (r *result) livePlot() string {
	var bars []bar
	for _, f := range r.Live {
		bars = append(bars, bar{
			label: fmt.Sprintf("%s, %s", many(f.Partitions, "partition"), many(f.Agents, "agent")),
			note:  fmt.Sprintf("%.0f ms (p50 %.0f)", f.P99*1000, f.P50*1000), value: f.P99, ours: true,
		})
	}
	return barChart(fmt.Sprintf("From produce to visible in the view, 99th percentile, at %s records/s",
		thousands(int64(r.Live[0].Rate+50)/100*100)), bars)
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// short writes 10000000 as 10 M.
func short(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%g M", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%g k", n/1e3)
	}
	return fmt.Sprintf("%g", n)
}
