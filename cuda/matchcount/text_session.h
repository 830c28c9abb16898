// The search of a chunk of queries, from the texts of the queries to results.
#pragma once

#include "device/context.h"
#include "matchcount/text_launches.h"
#include "matchcount/text_queries.h"
#include "matchcount/text_scan.h"

namespace pgwarp::cuda
{

class TextSession
{
public:
    // Sets the bytes of both workspaces.
    static void reserve(TextPlan& plan);

    // All arguments must outlive the session.
    TextSession(const Context& context, const TextsView& texts, const TextTimes& times, const TextPlan& plan,
                const Chunk& chunk, const SearchBatch& batch);

    // Enqueues all steps. Before the last step it waits for the others, unless the chunk is small: the distances so far
    // tell which queries need that step, and how long it takes. It also waits after some launches each, so that a
    // search ends soon after it is cancelled. The batch's overlapped work runs meanwhile. Throws Cancelled.
    void run(const TextAlphabet& alphabet);

private:
    void launch(TextStep step, std::span<const double> seconds);
    void wait();
    void launch_rest_of_all();
    void launch_rest_by_limits();
    bool ends_after_near(std::size_t i) const;
    // Copies a number of each query from the device.
    void read(std::uint32_t* to, const std::uint32_t* from);

    const Context& context_;
    const TextsView& texts_;
    const TextTimes& times_;
    const TextPlan& plan_;
    const Chunk& chunk_;
    const SearchBatch& batch_;
    std::size_t sent_bytes_ = 0;
    TextQueries queries_;  // on the device
    TextQueries written_;  // page-locked: those that are sent, then limits, bounds and chosen queries
};

}  // namespace pgwarp::cuda
