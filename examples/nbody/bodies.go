package main

import (
	"math"
	"math/rand/v2"
)

const (
	dt        = 1e-3 // a step of time
	softening = 1e-2 // how near bodies count as at most, squared
)

// bodies are points with a mass; three numbers each for place, speed and
// acceleration.
type bodies struct{ pos, vel, acc, mass []float64 }

// scatterBodies puts bodies of together mass 1 into a ball, turning slowly.
func scatterBodies(n int, seed uint64) bodies {
	rng := rand.New(rand.NewPCG(seed, 0))
	b := bodies{make([]float64, 3*n), make([]float64, 3*n), make([]float64, 3*n), make([]float64, n)}
	for i := range n {
		p := b.pos[3*i : 3*i+3]
		for {
			p[0], p[1], p[2] = 2*rng.Float64()-1, 2*rng.Float64()-1, 2*rng.Float64()-1
			if p[0]*p[0]+p[1]*p[1]+p[2]*p[2] <= 1 {
				break
			}
		}
		b.vel[3*i], b.vel[3*i+1] = -p[1]/2, p[0]/2
		b.mass[i] = 1 / float64(n)
	}
	return b
}

func (b *bodies) part(from, to int) bodies {
	clone := func(s []float64, per int) []float64 { return append([]float64(nil), s[per*from:per*to]...) }
	return bodies{clone(b.pos, 3), clone(b.vel, 3), clone(b.acc, 3), clone(b.mass, 1)}
}

// attract adds what others pull b with; a body does not pull itself, for it is at
// distance 0.
func (b *bodies) attract(pos, mass []float64) {
	for i := 0; i < len(b.acc); i += 3 {
		x, y, z := b.pos[i], b.pos[i+1], b.pos[i+2]
		var ax, ay, az float64
		for j, m := range mass {
			dx, dy, dz := pos[3*j]-x, pos[3*j+1]-y, pos[3*j+2]-z
			d := dx*dx + dy*dy + dz*dz + softening
			pull := m / (d * math.Sqrt(d))
			ax += pull * dx
			ay += pull * dy
			az += pull * dz
		}
		b.acc[i] += ax
		b.acc[i+1] += ay
		b.acc[i+2] += az
	}
}

func (b *bodies) kick(dt float64) {
	for i, a := range b.acc {
		b.vel[i] += dt * a
	}
}

func (b *bodies) drift(dt float64) {
	for i, v := range b.vel {
		b.pos[i] += dt * v
	}
}

// energy returns that of motion and that of places.
func (b *bodies) energy() float64 {
	sum := 0.0
	for i, m := range b.mass {
		p, v := b.pos[3*i:3*i+3], b.vel[3*i:3*i+3]
		sum += m * (v[0]*v[0] + v[1]*v[1] + v[2]*v[2]) / 2
		for j, other := range b.mass[:i] {
			q := b.pos[3*j : 3*j+3]
			dx, dy, dz := p[0]-q[0], p[1]-q[1], p[2]-q[2]
			sum -= m * other / math.Sqrt(dx*dx+dy*dy+dz*dz+softening)
		}
	}
	return sum
}
