// The searcher of ivfadc on the CPU. Its searches with filters are in filtered_search.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "methods/arrays.h"
#include "methods/ivfadc/build_arrays.h"
#include "methods/ivfadc/proposer.h"
#include "methods/ivfadc/row_store.h"
#include "numeric/top_k.h"

namespace pgwarp
{

// Probes the nearest lists, scores their rows by bytes or in their stored form, and ranks the best by the store's
// values.
class IvfadcSearcher : public Searcher
{
public:
    IvfadcSearcher(const IndexShape& shape, const ParameterList& options, std::span<const ArrayShape> arrays);

    void write(const std::string& array, std::uint64_t offset, std::span<const std::byte> bytes) override
    {
        if (array == array_centroids) {
            write_piece(std::span<float>(centroids_), offset, bytes);
        } else if (array == array_list_of_row) {
            write_piece(lists_.list_of_row(), offset, bytes);
        } else {
            if (stored_bytes_ != nullptr && stored_bytes_->write(array, offset, bytes, lists_)) return;
            // Arrays that the CPU does not use are ignored.
            store_->write(array, offset, bytes, lists_);
        }
    }
    void finish_load(ThreadPool& pool) override
    {
        lists_.arrange();
        store_->finish_load(lists_, pool);
        lists_.finish(keeps_positions_);
        has_proposer_ = proposer_.build(metric_, dimensions_, centroids_, lists_, *store_, stored_bytes_.get(), pool);
        stored_bytes_.reset();
    }
    std::uint64_t memory_bytes() const override
    {
        return store_->memory_bytes() + proposer_.memory_bytes() + lists_.memory_bytes() +
               centroids_.size() * sizeof(float);
    }
    ResultKind result_kind() const override { return store_->result_kind(); }
    double bound_width(const float* query) const override { return store_->bound_width(query); }
    double search_cost(const SearchBatch& batch) const override
    {
        return static_cast<double>(batch.count) * cost_of(probes_of(batch));
    }
    ParameterList resolved_settings(const SearchBatch& batch) const override
    {
        ParameterList settings;
        settings.set("probes", static_cast<std::int64_t>(probes_of(batch)));
        settings.set("refine_factor", static_cast<std::int64_t>(refine_factor_of(batch)));
        return settings;
    }
    void search(const SearchBatch& batch, std::vector<std::vector<RowResult>>& results,
                ThreadPool& pool) const override;
    void search_rungs(const SearchBatch& batch, std::span<const SearchRung> rungs, RungResults& results,
                      ThreadPool& pool) const override;
    void search_exact(const SearchBatch& batch, double after_distance, std::uint32_t after_row,
                      std::vector<RowResult>& results, ThreadPool& pool) const override;
    bool takes_filters() const override { return true; }
    double filtered_cost(const SearchBatch& batch, double pass_rate) const override;
    bool compares_certain_rows() const override { return keeps_positions_; }
    void search_among(const SearchBatch& batch, std::span<const RowList> rows, const RowResult& after,
                      std::vector<std::vector<RowResult>>& results, ThreadPool& pool) const override;

private:
    // Selects the best rows of the first `probes` lists.
    struct Scan {
        std::size_t probes;
        TopK best;
    };

    std::size_t probes_of(const SearchBatch& batch) const;
    double cost_of(std::size_t probes) const;
    std::size_t refine_factor_of(const SearchBatch& batch) const;
    std::vector<std::vector<Candidate>> nearest_lists(const float* query, std::span<const std::size_t> probes,
                                                      ThreadPool& pool) const;
    std::size_t room_of(std::uint32_t list) const;
    float score_list(const PreparedQuery& query, double reach, const Candidate& probe, float* out) const;
    void offer_list(const SearchBatch& batch, std::size_t number, std::uint32_t list, const float* scores, float limit,
                    TopK& best) const;
    void scan_lists(const SearchBatch& batch, const PreparedQuery& query, double reach,
                    std::span<const Candidate> probes, std::span<Scan> scans) const;
    void scan_lists_together(const SearchBatch& batch, const PreparedQuery& query, double reach,
                             std::span<const Candidate> probes, std::span<Scan> scans, ThreadPool& pool) const;
    bool scan_filtered(const SearchBatch& batch, std::size_t number, const PreparedQuery& query, TopK& best) const;
    std::size_t candidates_of(const SearchBatch& batch) const;
    std::vector<RowResult> rank(const PreparedQuery& query, const std::vector<Candidate>& candidates, std::size_t k,
                                ThreadPool& pool) const;
    double reach_of(const SearchBatch& batch, std::size_t number) const;
    std::vector<RowResult> search_one(const SearchBatch& batch, std::size_t number, ThreadPool& pool) const;
    std::vector<RowResult> search_filtered(const SearchBatch& batch, std::size_t number) const;
    void search_one_ladder(std::span<const SearchBatch> rungs, std::size_t number, RungResults& results,
                           ThreadPool& pool) const;
    std::size_t list_at(std::size_t position) const;

    Metric metric_;
    std::size_t dimensions_;
    std::size_t rows_;
    IvfOptions options_;
    std::vector<float> centroids_;
    InvertedLists lists_;
    Proposer proposer_;
    std::unique_ptr<StoredBytes> stored_bytes_;  // while loading
    std::unique_ptr<RowStore> store_;
    bool has_proposer_ = false;
    bool values_by_list_ = false;  // a value depends on the row's list
    bool keeps_positions_;         // of rows: where these have attributes
};

}  // namespace pgwarp
