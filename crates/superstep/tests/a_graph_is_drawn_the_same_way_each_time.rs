//! Shows where the nodes of a drawing are put: the same graph is always drawn the same way, nothing lies on anything else, and what is in a
//! subgraph is in its box. An order taken from a hash map, or a rounded width, would break that for some graphs only.

use superstep::prelude::*;
use superstep::{AnyGraph, Area, CompiledGraph, Placed};

#[derive(State, Clone, Default)]
struct Count {
    #[channel(reduce = Sum)]
    count: i64,
}

async fn one() -> CountUpdate {
    Count::update().count(1)
}

/// A graph with two levels of subgraphs, a loop, a node that leads to itself, and a long edge past other nodes.
fn nested() -> CompiledGraph<Count> {
    let inner = StateGraph::<Count>::new()
        .add_node("think_for_a_rather_long_time_about_it", one)
        .add_node("look", one)
        .add_edge(START, "think_for_a_rather_long_time_about_it")
        .add_conditional_edges(
            "think_for_a_rather_long_time_about_it",
            ["look", END],
            |_: &Count| END,
        )
        .add_edge("look", "think_for_a_rather_long_time_about_it")
        .compile()
        .expect("a graph");
    let middle = StateGraph::<Count>::new()
        .add_node("prepare", one)
        .add_node("agent", inner)
        .add_edge(START, "prepare")
        .add_edge("prepare", "agent")
        .compile()
        .expect("a graph");
    StateGraph::<Count>::new()
        .add_node("a", one)
        .add_node("b", one)
        .add_node("work", middle)
        .add_node("end", one)
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "work")
        .add_conditional_edges("work", ["a", "work", "end"], |_: &Count| "end")
        .add_edge("a", "end")
        .compile()
        .expect("a graph")
}

/// Layers of nodes, each with edges to two of the next layer.
fn wide(layers: usize, nodes: usize) -> CompiledGraph<Count> {
    let mut graph = StateGraph::<Count>::new();
    let name = |layer: usize, node: usize| format!("n{layer}_{node}");
    for layer in 0..layers {
        for node in 0..nodes {
            graph = graph.add_node(name(layer, node), one);
            graph = match layer.checked_sub(1) {
                None => graph.add_edge(START, name(layer, node)),
                Some(above) => graph
                    .add_edge(name(above, node), name(layer, node))
                    .add_edge(name(above, (node * 7 + layer) % nodes), name(layer, node)),
            };
        }
    }
    graph.compile().expect("a graph")
}

fn placed(graph: CompiledGraph<Count>, depth: usize) -> Placed {
    AnyGraph::from(graph).drawing(depth).placed()
}

fn apart(a: &Area, b: &Area) -> bool {
    a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y
}

fn inside(inner: &Area, outer: &Area) -> bool {
    inner.x >= outer.x
        && inner.y >= outer.y
        && inner.x + inner.width <= outer.x + outer.width
        && inner.y + inner.height <= outer.y + outer.height
}

fn check(placed: &Placed) {
    for (at, a) in placed.nodes.iter().enumerate() {
        for b in placed.nodes.iter().skip(at + 1) {
            assert!(apart(&a.area, &b.area), "{a:?} and {b:?}");
        }
        assert!(a.area.x + a.area.width <= placed.width, "{a:?} is in the picture");
        assert!(a.area.y + a.area.height <= placed.height, "{a:?} is in the picture");
        for group in &placed.groups {
            let own = a.id.starts_with(&format!("{}:", group.id));
            let within = inside(&a.area, &group.area);
            assert!(if own { within } else { apart(&a.area, &group.area) }, "{a:?} and {group:?}");
        }
    }
    let points = placed.edges.iter().flat_map(|edge| &edge.points);
    for (x, y) in points {
        assert!((0.0..=placed.width).contains(x) && (0.0..=placed.height).contains(y), "{x} {y}");
    }
    assert!(placed.edges.iter().all(|edge| edge.points.len() >= 2));
}

#[test]
fn nothing_lies_on_anything_else() {
    for depth in 0..3 {
        let placed = placed(nested(), depth);
        assert_eq!(placed.groups.len(), depth);
        check(&placed);
    }
    check(&placed(wide(6, 5), 0));
    check(&placed(wide(15, 20), 0));
}

#[test]
fn the_same_graph_gives_the_same_picture() {
    assert_eq!(nested().to_svg(), nested().to_svg());
    assert_eq!(placed(wide(15, 20), 0), placed(wide(15, 20), 0));
}

#[test]
fn a_subgraph_that_is_folded_says_that_it_can_be_unfolded() {
    let placed = placed(nested(), 1);
    let foldable = placed.nodes.iter().filter(|node| node.subgraph).map(|node| &*node.id);
    assert_eq!(foldable.collect::<Vec<_>>(), ["work:agent"]);
}

#[test]
fn an_edge_to_an_earlier_node_is_told_from_one_that_leads_on() {
    let placed = placed(nested(), 0);
    let back = placed.edges.iter().filter(|edge| edge.back);
    let ends: Vec<_> = back.map(|edge| (&*edge.edge.source, &*edge.edge.target)).collect();
    assert_eq!(ends, [("work", "a"), ("work", "work")]);
}

#[test]
fn names_are_text_in_the_picture_whatever_is_in_them() {
    let graph = StateGraph::<Count>::new().add_node("<b>&\"", one).add_edge(START, "<b>&\"");
    let svg = graph.compile().expect("a graph").to_svg();
    assert!(svg.contains("&lt;b&gt;&amp;&quot;") && !svg.contains("<b>"), "{svg}");
}
