// Names of the stored arrays of graph, which graph.h describes, and values of its options and settings.
#pragma once

#include <cstdint>

#include "protocol/parameters.h"

namespace pgwarp
{

inline constexpr char array_seeds[] = "seeds";
inline constexpr char array_neighbours[] = "neighbours";
inline constexpr char array_edge_changes[] = "edge_changes";
inline constexpr char array_projection[] = "projection";
inline constexpr char array_bits[] = "bits";

// Values of the option `vectors`.
enum class GraphVectors { full = 0, half = 1, bits = 2 };

// The choices in a search of the SONG paper (Zhao, Tan, Li, ICDE 2020, sections 4 to 6), as they travel from a session
// to the device. The CUDA device follows them (cuda/graph/launch_config.h); the CPU ignores them.
struct GraphChoices {
    // The set of visited rows. Hash tables are exact; the filters may skip a few rows.
    enum class Visited : int { usual = -1, hash = 0, bloom = 1, cuckoo = 2 };
    Visited visited = Visited::usual;
    bool bounded_queue = true;        // the queue holds no more rows than the search keeps
    bool selected_insertion = false;  // only rows that enter the queue are remembered as visited
    bool visited_deletion = false;    // rows that leave the queue are forgotten
    int multi_query = 0;              // queries that share a warp: 1, 2 or 4; 0 = usual
    int multi_step = 0;               // rows expanded together; 0 = usual

    static constexpr int most_queries_of_warp = 4;
    static constexpr int most_steps = 32;
    static bool may_share_warp(int queries) { return queries == 0 || queries == 1 || queries == 2 || queries == 4; }

    // Adds the choices that differ from the defaults, so that default searches share their batches.
    void add_to(ParameterList& settings) const
    {
        if (visited != Visited::usual) settings.set("visited", static_cast<std::int64_t>(visited));
        if (!bounded_queue) settings.set("unbounded_queue", 1);
        if (selected_insertion) settings.set("selected_insertion", 1);
        if (visited_deletion) settings.set("visited_deletion", 1);
        if (multi_query > 0) settings.set("multi_query", multi_query);
        if (multi_step > 0) settings.set("multi_step", multi_step);
    }
};

}  // namespace pgwarp
