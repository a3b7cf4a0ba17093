//! Where the nodes and edges of a drawing stand: in layers from top to bottom, with subgraphs as boxes around their nodes.
//!
//! A drawing is placed from the inside out: each unfolded subgraph is placed by itself and then stands for one large node in the
//! graph around it. One level goes through four steps, each in a file: [`rank`] (cycles are broken, each node gets a layer),
//! [`order`] (nodes of a layer are ordered so that few edges cross), [`coords`] (positions), and here the lines between them. The same
//! drawing is always placed the same way: nothing depends on chance or on the order of a hash map.
//!
//! This room knows [`Drawing`] and nothing else of graphs.

mod coords;
mod order;
mod rank;
mod svg;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::drawing::{Drawing, Edge};
use crate::engine::{END, START};

/// A drawing with positions, in pixels from the upper left corner.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Placed {
    /// How wide it is.
    pub width: f64,
    /// How high it is.
    pub height: f64,
    /// The nodes, in the order of the drawing.
    pub nodes: Vec<PlacedNode>,
    /// The boxes around unfolded subgraphs, outer ones first.
    pub groups: Vec<PlacedGroup>,
    /// The edges, in the order of the drawing.
    pub edges: Vec<PlacedEdge>,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Area {
    /// Its left side.
    pub x: f64,
    /// Its upper side.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

impl Area {
    fn moved(self, x: f64, y: f64) -> Self {
        Self { x: self.x + x, y: self.y + y, ..self }
    }

    fn top(self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y)
    }

    fn bottom(self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height)
    }
}

/// A node of a [`Placed`] drawing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlacedNode {
    /// Its id in the drawing.
    pub id: String,
    /// What is written in it: its name without those of the graphs around it, cut if it is long.
    pub label: String,
    /// Whether it is a subgraph that can be unfolded.
    pub subgraph: bool,
    /// Where it is.
    pub area: Area,
}

/// The box around an unfolded subgraph.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlacedGroup {
    /// The id of the node that was unfolded.
    pub id: String,
    /// Its name.
    pub label: String,
    /// Where it is.
    pub area: Area,
}

/// An edge of a [`Placed`] drawing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlacedEdge {
    /// The edge.
    pub edge: Edge,
    /// Whether it leads back to an earlier layer.
    pub back: bool,
    /// The points it goes through, from its source to its target.
    pub points: Vec<(f64, f64)>,
}

/// Characters of a label; longer ones are cut.
const LABEL_MAX: usize = 30;
const LETTER: f64 = 7.6;
const NODE_HEIGHT: f64 = 36.0;
const END_HEIGHT: f64 = 28.0;
const MARGIN: f64 = 12.0;
/// Inside a group: beside its nodes, and above them for its name.
const GROUP_SIDE: f64 = 16.0;
const GROUP_TOP: f64 = 30.0;

fn label(id: &str) -> String {
    let name = match id {
        START => "start",
        END => "end",
        id => id.rsplit(':').next().unwrap_or(id),
    };
    if name.chars().count() <= LABEL_MAX {
        return name.to_owned();
    }
    name.chars().take(LABEL_MAX - 1).chain(['…']).collect()
}

/// The group that an id is in: everything before its last name.
fn group_of(id: &str) -> &str {
    id.rfind(':').map_or("", |at| &id[..at])
}

/// The part of an id that stands for it in a group: itself, or the group below that it is in.
fn inside<'a>(group: &str, id: &'a str) -> Option<&'a str> {
    let from = match group {
        "" => 0,
        group => id.strip_prefix(group)?.strip_prefix(':').map(|rest| id.len() - rest.len())?,
    };
    let end = id[from..].find(':').map_or(id.len(), |at| from + at);
    Some(&id[..end])
}

impl Drawing {
    /// Places the drawing.
    pub fn placed(&self) -> Placed {
        let mut placer = Placer { drawing: self, places: BTreeMap::new(), ways: BTreeMap::new() };
        let (width, height) = placer.place("");
        placer.finish(width + 2.0 * MARGIN, height + 2.0 * MARGIN)
    }
}

struct Placer<'a> {
    drawing: &'a Drawing,
    /// Nodes and groups; those in a group relative to it until it is placed.
    places: BTreeMap<String, Area>,
    /// The bends of edges by their number: relative as their group is. Each with whether it leads back.
    ways: BTreeMap<usize, (bool, Vec<(f64, f64)>)>,
}

impl Placer<'_> {
    /// Places what is in a group, and returns its size.
    fn place(&mut self, group: &str) -> (f64, f64) {
        let mut names: Vec<&str> = Vec::new();
        for id in &self.drawing.nodes {
            let Some(name) = inside(group, id) else { continue };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let sizes: Vec<_> = names.iter().map(|name| self.size(name)).collect();
        // Edges between the same two things share a way at this level.
        let at =
            |id: &str| inside(group, id).and_then(|name| names.iter().position(|one| *one == name));
        let mut links: Vec<(usize, usize)> = Vec::new();
        let mut of_edges: Vec<(usize, usize)> = Vec::new();
        for (nth, edge) in self.drawing.edges.iter().enumerate() {
            let (Some(from), Some(to)) = (at(&edge.source), at(&edge.target)) else { continue };
            // What is inside one of them is placed with it.
            let nested = from == to && group_of(&edge.source) != group;
            if nested {
                continue;
            }
            let link = links.iter().position(|link| *link == (from, to)).unwrap_or_else(|| {
                links.push((from, to));
                links.len() - 1
            });
            of_edges.push((nth, link));
        }
        let last = names.iter().position(|name| *name == END);
        let ranked = rank::rank(names.len(), &links, last);
        let layers = order::order(&ranked);
        let placed = coords::coords(&ranked, &layers, &sizes);
        for (name, area) in names.iter().zip(&placed.areas) {
            self.shift_inside(name, *area);
            self.places.insert((*name).to_owned(), *area);
        }
        for (nth, link) in of_edges {
            let way = placed.ways.get(link).cloned().unwrap_or_default();
            let back = ranked.links.get(link).is_some_and(|link| link.back);
            self.ways.insert(nth, (back, way));
        }
        (placed.width, placed.height)
    }

    /// The size of a node, or of a group with all that is in it.
    fn size(&mut self, name: &str) -> (f64, f64) {
        if self.drawing.nodes.iter().any(|id| id == name) {
            let letters = label(name).chars().count();
            let height = if name == START || name == END { END_HEIGHT } else { NODE_HEIGHT };
            // A count of at most LABEL_MAX.
            return (even((letters as f64 * LETTER + 26.0).max(64.0)), height);
        }
        let (width, height) = self.place(name);
        let title = label(name).chars().count() as f64 * LETTER + 24.0;
        (even(width.max(title)) + 2.0 * GROUP_SIDE, height + GROUP_TOP + GROUP_SIDE)
    }

    /// Moves what is in a group to where the group is.
    fn shift_inside(&mut self, group: &str, area: Area) {
        let prefix = format!("{group}:");
        let inner: Vec<&mut Area> = self
            .places
            .iter_mut()
            .filter(|(id, _)| id.starts_with(&prefix))
            .map(|(_, area)| area)
            .collect();
        let right = inner.iter().fold(0.0_f64, |right, area| right.max(area.x + area.width));
        // A name that is wider than what it is written over leaves room on both sides.
        let x = area.x + ((area.width - right) / 2.0).max(GROUP_SIDE);
        let y = area.y + GROUP_TOP;
        for place in inner {
            *place = place.moved(x, y);
        }
        for (nth, (_, points)) in &mut self.ways {
            let edge = self.drawing.edges.get(*nth);
            let within = |id: &str| id.starts_with(&prefix);
            if edge.is_some_and(|edge| within(&edge.source) && within(&edge.target)) {
                for point in points {
                    *point = (point.0 + x, point.1 + y);
                }
            }
        }
    }

    fn finish(self, width: f64, height: f64) -> Placed {
        let Self { drawing, places, mut ways } = self;
        let area = |id: &str| {
            let area = places.get(id).copied().unwrap_or_default().moved(MARGIN, MARGIN);
            let centre = (area.x + area.width / 2.0).round();
            Area { x: centre - area.width / 2.0, y: area.y.round(), ..area }
        };
        let node = |id: &String| PlacedNode {
            id: id.clone(),
            label: label(id),
            subgraph: drawing.subgraphs.contains(id),
            area: area(id),
        };
        let groups = places.keys().filter(|id| !drawing.nodes.contains(id));
        let group = |id: &String| PlacedGroup { id: id.clone(), label: label(id), area: area(id) };
        let edges = drawing.edges.iter().enumerate().map(|(nth, edge)| {
            let (back, bends) = ways.remove(&nth).unwrap_or_default();
            let bends =
                bends.into_iter().map(|(x, y)| ((x + MARGIN).round(), (y + MARGIN).round()));
            let (source, target) = (area(&edge.source), area(&edge.target));
            let mut points = Vec::new();
            if edge.source == edge.target {
                points.extend(loop_beside(source));
            } else {
                points.push(if back { beside(source) } else { source.bottom() });
                points.extend(bends);
                points.push(if back { beside(target) } else { target.top() });
            }
            PlacedEdge { edge: edge.clone(), back, points }
        });
        let edges = edges.collect();
        Placed {
            width: width.ceil(),
            height: height.ceil(),
            nodes: drawing.nodes.iter().map(node).collect(),
            groups: groups.map(group).collect(),
            edges,
        }
    }
}

/// A whole even number, so that the middle is a whole number, too, and straight edges are straight.
fn even(width: f64) -> f64 {
    (width / 2.0).ceil() * 2.0
}

/// Where an edge that leads back leaves and arrives.
fn beside(area: Area) -> (f64, f64) {
    (area.x + area.width, area.y + area.height / 2.0)
}

/// The way of an edge from a node to itself.
fn loop_beside(area: Area) -> [(f64, f64); 3] {
    let right = area.x + area.width;
    let (high, low) = (area.y + area.height * 0.25, area.y + area.height * 0.75);
    [(right, low), (right + coords::LOOP, f64::midpoint(high, low)), (right, high)]
}

impl Placed {
    /// The drawing as JSON, for programs that show it.
    pub fn to_json(&self) -> Json {
        let with_area = |mut json: Json, area: &Area| {
            json["x"] = area.x.into();
            json["y"] = area.y.into();
            json["width"] = area.width.into();
            json["height"] = area.height.into();
            json
        };
        let node = |node: &PlacedNode| {
            let json = json!({ "id": node.id, "label": node.label, "subgraph": node.subgraph });
            with_area(json, &node.area)
        };
        let group = |group: &PlacedGroup| {
            with_area(json!({ "id": group.id, "label": group.label }), &group.area)
        };
        let edge = |PlacedEdge { edge, back, points }: &PlacedEdge| {
            json!({
                "source": edge.source, "target": edge.target, "conditional": edge.conditional,
                "label": edge.shown_label(), "back": back, "points": points,
            })
        };
        json!({
            "width": self.width,
            "height": self.height,
            "nodes": self.nodes.iter().map(node).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
            "edges": self.edges.iter().map(edge).collect::<Vec<_>>(),
        })
    }
}
