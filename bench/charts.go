package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// series is one colour of a bar chart.
type series struct {
	name   string
	values []float64
}

var palette = []color.Color{
	color.RGBA{R: 0x00, G: 0x7d, B: 0x9c, A: 0xff},
	color.RGBA{R: 0xe0, G: 0x8e, B: 0x0b, A: 0xff},
}

// barChart draws groups of bars, a group for each name, and writes the value
// over every bar.
func barChart(path, title, unit, format string, names []string, all ...series) error {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	p.Y.Label.Text = unit
	p.Y.Min = 0
	p.NominalX(names...)
	p.Y.Tick.Marker = plot.TickerFunc(roundTicks)
	p.X.Min, p.X.Max = -0.6, float64(len(names))-0.4
	// The inits stand in the order light to heavy, so the left has room.
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs = vg.Points(12)
	p.Legend.Padding = vg.Points(3)
	p.Legend.ThumbnailWidth = vg.Points(14)
	p.Legend.TextStyle.Font.Size = vg.Points(11)
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	p.Add(grid)
	width := vg.Points(44 / float64(len(all)))
	top := 0.0
	for i, s := range all {
		bars, err := plotter.NewBarChart(plotter.Values(s.values), width)
		if err != nil {
			return err
		}
		bars.Color = palette[i%len(palette)]
		bars.LineStyle.Width = 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(all)-1)/2)
		texts := plotter.XYLabels{}
		for x, v := range s.values {
			texts.XYs = append(texts.XYs, plotter.XY{X: float64(x), Y: v})
			texts.Labels = append(texts.Labels, fmt.Sprintf(format, v))
			top = max(top, v)
		}
		labels, err := plotter.NewLabels(texts)
		if err != nil {
			return err
		}
		labels.Offset = vg.Point{X: bars.Offset, Y: vg.Points(3)}
		for j := range labels.TextStyle {
			labels.TextStyle[j].XAlign = -0.5
			labels.TextStyle[j].Font.Size = vg.Points(9)
		}
		p.Add(bars, labels)
		if len(all) > 1 {
			p.Legend.Add(s.name, bars)
		}
	}
	p.Y.Max = top * 1.2
	if err := p.Save(vg.Points(560), vg.Points(280), path+".svg"); err != nil {
		return fmt.Errorf("drawing %s: %w", filepath.Base(path), err)
	}
	return nil
}

// roundTicks marks 1, 2 or 5 times a power of ten, with a line for each.
func roundTicks(low, high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high-low)))
	for _, part := range []float64{0.1, 0.2, 0.5} {
		if (high-low)/(step*part) <= 7 {
			step *= part
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low / step); n*step <= high; n++ {
		ticks = append(ticks, plot.Tick{Value: n * step, Label: fmt.Sprintf("%.6g", n*step)})
	}
	return ticks
}

// charts draws one picture for every section that was measured.
func (r *Report) charts(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	if len(r.Startup) > 0 {
		var names []string
		static, dynamic := series{name: "static command"}, series{name: "dynamic command"}
		faults := series{}
		for _, x := range r.Startup {
			if x.Init == bareName || !x.PID1 {
				continue
			}
			if x.Command == "static" {
				names = append(names, x.Init)
				static.values = append(static.values, x.Wall.Median/1e3)
				faults.values = append(faults.values, x.Faults.Median)
			} else {
				dynamic.values = append(dynamic.values, x.Wall.Median/1e3)
			}
		}
		if err := barChart(at("startup"), "Start to exit above the bare command, as PID 1 (median)", "ms", "%.2f", names, static, dynamic); err != nil {
			return err
		}
		if err := barChart(at("faults"), "Page faults above the bare command, as PID 1 (median)", "page faults", "%.0f", names, faults); err != nil {
			return err
		}
	}
	if len(r.Idle) > 0 {
		var names []string
		rss, dirty := series{name: "resident"}, series{name: "private dirty"}
		for _, x := range r.Idle {
			names = append(names, x.Init)
			rss.values = append(rss.values, float64(x.RSS))
			dirty.values = append(dirty.values, float64(x.PrivateDirty))
		}
		if err := barChart(at("idle"), "Memory of an idle init", "kB", "%.0f", names, rss, dirty); err != nil {
			return err
		}
	}
	if len(r.Latency) > 0 {
		var names []string
		mid, tail := series{name: "median"}, series{name: "99th percentile"}
		for _, x := range r.Latency {
			if x.Storm {
				continue
			}
			names = append(names, x.Init)
			mid.values = append(mid.values, x.Median)
			tail.values = append(tail.values, x.P99)
		}
		if err := barChart(at("latency"), "From kill(2) to the workload's waking up, idle", "µs", "%.0f", names, mid, tail); err != nil {
			return err
		}
	}
	if len(r.Reaping) > 0 {
		var names []string
		cpu := series{}
		for _, x := range r.Reaping {
			names = append(names, x.Init)
			cpu.values = append(cpu.values, x.CPU)
		}
		if err := barChart(at("reaping"), "CPU time of the init for each orphan", "µs", "%.1f", names, cpu); err != nil {
			return err
		}
	}
	return nil
}
