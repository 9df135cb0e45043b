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
