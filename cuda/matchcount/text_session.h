// The search of a chunk of queries, from the texts of the queries to keys in page-locked memory.
#pragma once

#include "device/context.h"
#include "device/workspace.h"
#include "matchcount/text_launches.h"
#include "matchcount/text_queries.h"
#include "matchcount/text_scan.h"

namespace pgwarp::cuda
{

class TextSession
{
public:
    // All arguments must outlive the session. Throws std::bad_alloc.
    TextSession(const Context& context, const TextsView& texts, const TextTimes& times, const TextChunk& chunk,
                const SearchBatch& batch, Workspace& workspace);

    // Enqueues all steps and the copies of the answers. Before the last step it waits for the others, unless the chunk
    // is small: the distances so far tell which queries need that step, and how long it takes. Runs the batch's
    // overlapped work. Throws Cancelled.
    void run(const TextAlphabet& alphabet);
    // In page-locked memory, [count][k] and [count], once the stream's work is done.
    const TextAnswers& answers() const { return arrived_; }

private:
    void launch(TextStep step, std::span<const double> seconds);
    void launch_rest_of_all();
    void launch_rest_by_limits();
    bool ends_after_near(std::size_t i) const;
    template <class T>
    void read(T* to, const T* from, std::size_t count);

    const Context& context_;
    const TextsView& texts_;
    const TextTimes& times_;
    const TextChunk& chunk_;
    const SearchBatch& batch_;
    cudaStream_t stream_;
    std::span<const std::uint32_t> lengths_;  // of the queries
    std::size_t sent_bytes_ = 0;
    TextQueries queries_;  // on the device
    TextAnswers answers_;
    TextQueries written_;  // page-locked: those that are sent, then limits, bounds and chosen queries
    TextAnswers arrived_;
};

}  // namespace pgwarp::cuda
