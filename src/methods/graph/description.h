// graph: names of the stored arrays, which graph.h describes, and values of options and settings.
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

// What the SONG paper leaves to choose of a search (Zhao, Tan, Li, ICDE 2020, sections 4 to 6), as it travels from a
// session to the device. The CUDA device goes by it (cuda/graph/launch_config.h); the CPU has one way, and takes no
// notice.
struct GraphChoices {
    // How visited rows are remembered. Exact hash tables lose nothing; the filters may pass over a few rows.
    enum class Visited : int { usual = -1, hash = 0, bloom = 1, cuckoo = 2 };
    Visited visited = Visited::usual;
    bool bounded_queue = true;        // the queue is no longer than what is kept
    bool selected_insertion = false;  // only rows that enter the queue are remembered
    bool visited_deletion = false;    // and forgotten when they leave it
    int multi_query = 0;              // queries a warp: 1, 2 or 4; 0 = usual
    int multi_step = 0;               // rows expanded a turn; 0 = usual

    static constexpr int most_queries_of_warp = 4;
    static constexpr int most_steps = 32;
    static bool may_share_warp(int queries) { return queries == 0 || queries == 1 || queries == 2 || queries == 4; }

    // What is as usual is left out, so that usual searches share their batches.
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
