# SPDX-License-Identifier: Apache-2.0
"""Mutants of the kernels, one edit of their source at a time, compiled to PTX: a folder for each table, and in it a file for each
row.

    source_mutants.py NVCC ROOT OUTPUT_DIRECTORY STAMP DEPFILE ARCHITECTURE=TARGET,... [NVCC OPTION...]

A row is (name, (file, old text, new text)...). A row whose old text is not there exactly once is an error that names it:
the kernel has changed, and the row must follow.
"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

TILE_COPY = 'tile_copy.cuh'
MMA, LOAD, STORE = 'blackwell/roles/mma.cuh', 'blackwell/roles/load.cuh', 'blackwell/roles/store.cuh'
SOFTMAX, CORRECTION = 'blackwell/roles/softmax.cuh', 'blackwell/roles/correction.cuh'
ROW, CTA, LAYOUT, TASK_WALK = 'blackwell/row.cuh', 'blackwell/cta.cuh', 'blackwell/layout.h', 'task_walk.cuh'
TASK_RING, SCHEDULER = 'task_ring.cuh', 'scheduler_role.cuh'
HOPPER_BARRIERS, HOPPER_CTA = 'hopper/barrier_table.h', 'hopper/cta.cuh'
HOPPER_QUERY, HOPPER_STORE = 'hopper/roles/query.cuh', 'hopper/roles/store.cuh'
HOPPER_CONSUMER = 'hopper/roles/consumer.cuh'
TCGEN05 = '../ptx/tcgen05.cuh'

# Pieces that more than one row moves.
RELEASE_K = '    if (stage == last_stage) cta.bar.kv_empty.commit(k_slot);\n'
RELEASE_Q = '    if (!L::o_over_q && scores.last()) cta.bar.q_empty.commit(stage);\n'
RELEASE_V = '    if (stage == last_stage) cta.bar.kv_empty.commit(v_slot);\n'
ANNOUNCE_O = '    if (L::scores_ahead || values.last()) cta.bar.o_ready.commit(stage);\n'
SCORE_STEPS = '    if constexpr (L::score_steps <= 8) {\n'
VALUE_STEPS = '    steps(0, L::value_steps_before_tail);\n'
ADVANCE_SCORES = '    advance_scores(score_stage, false);\n'
VALUE_TAIL_STEPS = '    steps(L::value_steps_before_tail, L::value_steps);\n'
WAIT_FOR_TAIL = '    cta.bar.p_tail.wait(stage, p_phase);\n    ptx::tcgen05_fence_after_thread_sync();\n'
WAIT_FOR_SLOT = '    cta.bar.kv_empty.wait(kv.index, kv.phase);\n'
LOAD_V = ('    load_kv(v_pieces, values, params.v, values.task().v_plane, cta.v_tile(kv.index), config.v_tile_bytes(), '
          'params.v_pieces_apart);\n')
LOAD_BOX = '    ptx::cp_async_bulk_tensor_load(piece, &map, coordinates, barrier);\n'
STORE_BOX = '    ptx::cp_async_bulk_tensor_store(&map, coordinates, piece);\n'
FIRST_COLUMNS = '    const int32_t first_columns[5] = {0, coordinates[1], coordinates[2], coordinates[3], coordinates[4]};\n'
RELEASE_O = '        ptx::tcgen05_fence_before_thread_sync();\n        release_o(stage);\n'
MASK = '''    if constexpr (decltype(masked)::value) {  // where a row of the warp needs it
      if (config.general()) visible = keys_of_row(walk.again());
      const int32_t first_key = block * config.block_keys;
      if (ptx::vote_sync_any(visible.begin > first_key || visible.end < first_key + config.block_keys)) {
        mask_row<Mask<config.mask>::bounded_below>(s, visible, first_key);
      }
    }
'''

# Wrong whatever the head dimension.
ROWS = [
    # Released too early.
    ('V is released one step early', (MMA, RELEASE_V, ''), (MMA, VALUE_STEPS, RELEASE_V + VALUE_STEPS)),
    ('K is released one step early', (MMA, RELEASE_K, ''), (MMA, SCORE_STEPS, RELEASE_K + SCORE_STEPS)),
    ('Q is released one step early', (MMA, RELEASE_Q, ''), (MMA, SCORE_STEPS, RELEASE_Q + SCORE_STEPS)),
    ('O is announced one step early', (MMA, ANNOUNCE_O, ''), (MMA, VALUE_STEPS, ANNOUNCE_O + VALUE_STEPS)),
    ('O is announced before the tail', (MMA, ANNOUNCE_O, ''), (MMA, ADVANCE_SCORES, ANNOUNCE_O + ADVANCE_SCORES)),
    ('S is announced before it is computed',
     (MMA, SCORE_STEPS, '    cta.bar.s_ready.commit(buffer);\n' + SCORE_STEPS),
     (MMA, '    }\n    cta.bar.s_ready.commit(buffer);\n', '    }\n')),
    ('the message slot is released before it is read',
     (CORRECTION, '        const float factor = cta.scale_or_sum(stage, row);\n',
      '        cta.bar.softmax_corr_empty.arrive(stage);\n        const float factor = cta.scale_or_sum(stage, row);\n'),
     (CORRECTION, RELEASE_O, RELEASE_O.replace('release_o', 'cta.bar.p_o_rescale.arrive'))),
    ('O is released before the epilogue has read it',
     (CORRECTION, '      normalise_o<config>(', '      cta.bar.p_o_rescale.arrive(stage);\n      normalise_o<config>('),
     (CORRECTION, '      release_o(stage);  // for the next task\n', '      cta.bar.softmax_corr_empty.arrive(stage);\n')),
    ('O is released before it is rescaled',
     (CORRECTION, '        if (ptx::vote_sync_any(factor < 1.0f)) {',
      '        cta.bar.p_o_rescale.arrive(stage);\n        if (ptx::vote_sync_any(factor < 1.0f)) {'),
     (CORRECTION, RELEASE_O, RELEASE_O.replace('release_o', 'cta.bar.softmax_corr_empty.arrive'))),
    ('the O tile is returned before TMA has read it',
     (STORE, '      ptx::cp_async_bulk_wait_group_read<1>();\n      cta.bar.corr_epi_empty.arrive(0);\n',
      '      cta.bar.corr_epi_empty.arrive(0);\n      ptx::cp_async_bulk_wait_group_read<1>();\n')),
    ('half of P is handed over as three quarters',
     (SOFTMAX, 'c < chunks_before_tail; ++c', 'c < chunks_before_tail - 1; ++c'),
     (SOFTMAX, 'int c = chunks_before_tail;', 'int c = chunks_before_tail - 1;')),
    ('the value MMA takes seven eighths of P before the tail',
     (MMA, VALUE_STEPS, '    steps(0, L::value_steps_before_tail + 1);\n'),
     (MMA, VALUE_TAIL_STEPS, '    steps(L::value_steps_before_tail + 1, L::value_steps);\n')),
    ('the proxy fence comes after the arrival',
     (CORRECTION, '    ptx::fence_proxy_async_shared_cta();\n    cta.bar.corr_epi_full.arrive(stage);\n',
      '    cta.bar.corr_epi_full.arrive(stage);\n    ptx::fence_proxy_async_shared_cta();\n')),
    ('the proxy fence is in the thread that stores, not in those that wrote',
     (CORRECTION, '    ptx::fence_proxy_async_shared_cta();\n', ''),
     (STORE, '      cta.bar.corr_epi_full.wait(stage, phase);\n',
      '      cta.bar.corr_epi_full.wait(stage, phase);\n      ptx::fence_proxy_async_shared_cta();\n')),
    # Waited for too late.
    ('K is waited for one step late',
     (MMA, 'if (stage == 0) k_slot = next_kv();', 'if (stage == 0) k_slot = kv.index;'),
     (MMA, '    cta.bar.s_ready.commit(buffer);\n', '    if (stage == 0) next_kv();\n    cta.bar.s_ready.commit(buffer);\n')),
    ('the tail of P is waited for one step late',
     (MMA, WAIT_FOR_TAIL + VALUE_TAIL_STEPS, VALUE_TAIL_STEPS + WAIT_FOR_TAIL)),
    ('the slot is waited for after its load',
     (LOAD, WAIT_FOR_SLOT, ''), (LOAD, '    kv.advance();\n', WAIT_FOR_SLOT + '    kv.advance();\n')),
    ('the epilogue reads O before the last MMA is waited for',
     (CORRECTION, '      cta.bar.o_ready.wait_warp(stage, o_phase);\n      ptx::tcgen05_fence_after_thread_sync();\n', ''),
     (CORRECTION, '      release_o(stage);  // for the next task\n',
      '      cta.bar.o_ready.wait_warp(stage, o_phase);\n      ptx::tcgen05_fence_after_thread_sync();\n      release_o(stage);\n')),
    ('Q is waited for in the first task alone',
     (MMA, '  uint32_t q_phase = 0;\n', '  uint32_t q_phase = 0;\n  int q_waits = 0;\n'),
     (MMA, 'if (scores.first) {', 'if (scores.first && q_waits++ < 2) {')),
    # In another order.
    ('the score MMA comes before the value MMA that reads the P in its columns',
     (MMA, ADVANCE_SCORES, ''), (MMA, '    score(score_stage);\n', ''),
     (MMA, VALUE_STEPS, ADVANCE_SCORES + '    score(score_stage);\n' + VALUE_STEPS)),
    ('the score MMA comes before the tail of the value MMA that reads the P in its columns',
     (MMA, '    score(score_stage);\n', ''), (MMA, ADVANCE_SCORES, ADVANCE_SCORES + '    score(score_stage);\n')),
    ('each Q stage takes a block of scores of its own', (MMA, 'if (stage == 0) more_scores =', 'more_scores =')),
    ('K and V are loaded in the other order',
     (LOAD, LOAD_V + '    load_k(false);\n', '    load_k(false);\n' + LOAD_V)),
    ('the ring of K and V has one slot', (LAYOUT, '  return config;\n', '  config.kv_slots = 1;\n  return config;\n')),
    ('the commit is of another lane than the MMAs',
     (TCGEN05, '      ".reg .pred leader;\\n\\t"\n      "elect.sync _|leader, 0xffffffff;\\n\\t"\n',
      '      ".reg .pred leader;\\n\\t"\n      ".reg .b32 lane;\\n\\t"\n      "elect.sync lane|leader, 0xffffffff;\\n\\t"\n'
      '      "sub.u32 lane, 31, lane;\\n\\t"\n      "{ .reg .b32 mine; mov.u32 mine, %%laneid; setp.eq.u32 leader, mine, lane; }\\n\\t"\n')),
    # The stream of blocks.
    ('the first block of each task but the first is skipped',
     (TASK_WALK, '      block = visited.end;\n', '      block = visited.end - (tasks_taken_++ > 0 ? 1 : 0);\n'),
     (TASK_WALK, '  int32_t begin_ = 0;\n', '  int32_t begin_ = 0, tasks_taken_ = 0;\n')),
    ('a task without blocks has one', (TASK_WALK, '    while (block == begin_) {\n', '    if (block == begin_) {\n')),
    ('a task is done with its last block but one', (TASK_WALK, 'last() const { return block == begin_;', 'last() const { return block <= begin_ + 1;')),
    # Rings and phases.
    ('the MMA driver has a ring of one slot less', (MMA, 'PipelineState<config.kv_slots>::consumer()', 'PipelineState<config.kv_slots - 1>::consumer()')),
    ('the loader has a ring of one slot less', (LOAD, 'PipelineState<config.kv_slots>::producer()', 'PipelineState<config.kv_slots - 1>::producer()')),
    ('a load goes into the next slot', (LOAD, 'cta.k_tile(kv.index)', 'cta.k_tile((kv.index + 1) % config.kv_slots)')),
    ('the value MMA reads the P in the next S', (MMA, 'cta.p_tmem(p_cursor.buffer(stage))', 'cta.p_tmem((p_cursor.buffer(stage) + 1) % L::s_buffers)')),
    ('P is stored in the next S', (SOFTMAX, 'my_cta.p_tmem(buffer)', 'my_cta.p_tmem((buffer + 1) % L::s_buffers)')),
    ('softmax reads the next S', (SOFTMAX, 'my_cta.s_tmem(buffer)', 'my_cta.s_tmem((buffer + 1) % L::s_buffers)')),
    ('softmax stays at its first S', (SOFTMAX, '    s_cursor.advance(config.q_stages);\n', '')),
    ('softmax takes the S of the other stage, too', (SOFTMAX, 's_cursor.advance(config.q_stages)', 's_cursor.advance(1)')),
    ('softmax waits for the other phase of S', (SOFTMAX, 's_cursor.phase()', 's_cursor.phase() ^ 1')),
    ('the phase of S turns one S late', (CTA, 'return number < buffers ? 0 : 1;', 'return number <= buffers ? 0 : 1;')),
    ('the phase of S never turns', (CTA, '    if (number >= 2 * buffers) number -= 2 * buffers;\n', '    if (number >= buffers) number -= buffers;\n')),
    ('the message goes into the slot of the other stage', (SOFTMAX, 'cta.scale_or_sum(stage, row) = factor;', 'cta.scale_or_sum(1 - stage, row) = factor;')),
    ('the phase of Q is not carried to the next task, load', (LOAD, '    q_phase ^= 1;\n', '')),
    ('the phase of Q is not carried to the next task, mma', (MMA, '      if (stage == last_stage) q_phase ^= 1;\n', '')),
    ('the phase of P is not carried to the next task',
     (MMA, '  for (; values.next(); p_phase ^= 1) {\n', '  for (; values.next(); p_phase ^= 1) {\n    if (values.first) p_phase = 0;\n')),
    ('the phase of S starts afresh in each task', (SOFTMAX, '    RowState state;\n', '    RowState state;\n    s_cursor.number = stage;\n')),
    ('the phase of o_ready is not carried to the next task', (CORRECTION, '      message_phase ^= 1;\n      o_phase ^= 1;\n', '      message_phase ^= 1;\n')),
    ('the phase of the O tile is not carried to the next task', (CORRECTION, '    epi_phase ^= 1;\n', '')),
    ('a task without blocks turns the phase of o_ready', (CORRECTION, '      o_phase ^= 1;\n    }\n', '    }\n    o_phase ^= 1;\n')),
    # Values.
    ('O is not rescaled when it must be', (CORRECTION, 'vote_sync_any(factor < 1.0f)', 'vote_sync_any(factor < 0.0f)')),
    ('O is rescaled by the factor of the other stage', (CORRECTION, 'const float factor = cta.scale_or_sum(stage, row);', 'const float factor = cta.scale_or_sum(1 - stage, row);')),
    ('the maximum moves and the factor stays 1', (ROW, 'maximum == -CUDART_INF_F ? 1.0f : ptx::ex2_approx_ftz(moved_log2)', '1.0f')),
    ('the message is sent before the factor is known',
     (SOFTMAX, '      factor = state.take_maximum(block_maximum, moved_log2);\n      send();\n',
      '      send();\n      factor = state.take_maximum(block_maximum, moved_log2);\n')),
    ('the maximum never moves', (ROW, 'return !(moved_log2 >= -kRescaleThreshold);', 'return moved_log2 == -CUDART_INF_F;')),
    ('the sum is not rescaled', (ROW, 'sum = sum * factor + (low + high);', 'sum = sum + (low + high);')),
    ('the exponent uses the maximum before the block',
     (SOFTMAX, '      offset = state.exponent_offset(scale_log2);\n', '')),
    ('large maxima are not subtracted before the scores are scaled', (SOFTMAX, 'ptx::vote_sync_any(is_large(offset))', 'ptx::vote_sync_any(false)')),
    ('large maxima are subtracted in the block that they come with alone', (SOFTMAX, 'RowState::is_taken(moved_log2) || is_large(offset)', 'RowState::is_taken(moved_log2)')),
    ('a large maximum is subtracted twice', (ROW, '  if (large) offset = maximum == CUDART_INF_F ? CUDART_NAN_F : 0.0f;\n', '')),
    ('a large maximum is subtracted from all rows of the warp', (ROW, 'large ? -maximum : 0.0f', '-maximum')),
    ('the mask comes after exp2',
     (SOFTMAX, MASK, ''),
     (SOFTMAX, '    state.add<0, chunks_before_tail>(s, factor);\n', MASK + '    state.add<0, chunks_before_tail>(s, factor);\n')),
    ('the maximum is taken before the mask',
     (SOFTMAX, MASK, ''),
     (SOFTMAX, '    const float block_maximum = row_maximum(s, state.maximum);\n', '    const float block_maximum = row_maximum(s, state.maximum);\n' + MASK)),
    ('the mask is applied where no row needs it, and not where one does', (SOFTMAX, 'if (ptx::vote_sync_any(visible.begin', 'if (!ptx::vote_sync_any(visible.begin')),
    ('a row that sees all keys of a block but the last runs no mask code',
     (SOFTMAX, 'visible.end < first_key + config.block_keys)', 'visible.end < first_key + config.block_keys - 1)')),
    ('P of the first columns is not made again when the maximum moves', (SOFTMAX, '      store_early();\n    } else {\n', '    } else {\n')),
    ('P of the first columns is made again without waiting for the first store', (SOFTMAX, '        ptx::tcgen05_wait_st();  // two stores to the same columns are in no order\n', '')),
    ('P of the first columns is made again from probabilities',
     (SOFTMAX, '        ptx::tcgen05_ld_32x32b(s[0], s_tmem);\n        ptx::tcgen05_wait_ld();\n        ptx::delivered(s[0]);\n', '')),
    ('P of the first columns is made again from the next chunk', (SOFTMAX, 'ptx::tcgen05_ld_32x32b(s[0], s_tmem);', 'ptx::tcgen05_ld_32x32b(s[0], s_tmem + kChunkColumns);')),
    ('P of the first columns is made again from the next S',
     (SOFTMAX, 'ptx::tcgen05_ld_32x32b(s[0], s_tmem);', 'ptx::tcgen05_ld_32x32b(s[0], my_cta.s_tmem((buffer + 1) % L::s_buffers));')),
    ('P of the first columns is made twice', (SOFTMAX, 'store_p<config, early_columns, kChunkColumns>', 'store_p<config, 0, kChunkColumns>')),
    ('P of the first columns of a masked block is made again without the mask', (SOFTMAX, 'decltype(masked)::value ? 0 : kEarlyColumns', 'kEarlyColumns')),
    ('O is normalised with the sum before the last block', (SOFTMAX, '    state.add<chunks_before_tail, chunks>(s, 1.0f);\n', '    if (block > 0) state.add<chunks_before_tail, chunks>(s, 1.0f);\n')),
    ('the first value MMA of a task accumulates', (MMA, '!values.first || step > 0', 'true')),
    ('the first value MMA of a later block does not accumulate', (MMA, '!values.first || step > 0', '(!values.first && stage == 1) || step > 0')),
    ('the tail mask keeps one key too many', ('mask_columns.cuh', 'end < 32 ? 32 - end : 0', 'end < 31 ? 31 - end : 0')),
    ('the causal diagonal is off by one', ('mask.h', 'return {0, seq_kv - behind};', 'return {0, seq_kv - behind + 1};')),
    ('the causal mask is aligned to the top left', ('mask.h', 'return {0, seq_kv - behind};', 'return {0, seq_q - behind};')),
    ('one block too few is masked', ('mask.h', 'r.unmasked_end = end > 0 ? end / block_keys : 0;', 'r.unmasked_end = end > 0 ? end / block_keys + 1 : 0;')),
    ('one block too few is visited', ('mask.h', 'end / block_keys + (end % block_keys != 0 ? 1 : 0)', 'end / block_keys')),
    ('rows of one position are taken for rows of one head', (SOFTMAX, 'mask.keys(task.row_position(stage, row),', 'mask.keys(task.position(stage) + (row >> 1),')),
    ('LSE leaves out the scale', (CORRECTION, '__fmaf_rn(maximum, params.scale, log)', 'maximum + log')),
]

# Of what is there with a third S in TMEM alone, or does no harm without.
ROWS_OF_THREE_S = [
    ('the message slot is waited for after P is handed over',
     (SOFTMAX, '    wait_message_slot();\n', ''),
     (SOFTMAX, '    cta.bar.p_o_rescale.arrive(stage);\n', '    cta.bar.p_o_rescale.arrive(stage);\n    wait_message_slot();\n')),
    ('correction does not wait for the value MMA of the block before',
     (CORRECTION, '        if constexpr (L::scores_ahead) cta.bar.o_ready.wait_warp(stage, o_phase);\n', '')),
    ('the phase of o_ready turns once a task', (CORRECTION, '      if constexpr (L::scores_ahead) o_phase ^= 1;\n', '')),
    ('o_ready comes once a task', (MMA, 'L::scores_ahead || values.last()', 'values.last()')),
    ('the third S is not filled ahead', (MMA, 'n < L::s_buffers; ++n', 'n < 2; ++n')),
    ('K is not loaded ahead', (LOAD, '    if constexpr (L::scores_ahead) load_k(false);\n  }\n', '  }\n')),
    ('the stage whose P was read has the next scores, not the other', (MMA, '(stage + L::s_buffers) % config.q_stages', 'stage')),
    ('the value MMA stays at the first P', (MMA, '    p_cursor.advance(1);\n', '')),
    ('the score MMA stays at the first S', (MMA, '    s_cursor.advance(1);\n', '')),
    ('S is announced by its stage', (MMA, 'cta.bar.s_ready.commit(buffer)', 'cta.bar.s_ready.commit(stage)')),
    ('S is waited for by its stage', (SOFTMAX, 'cta.bar.s_ready.wait_warp(buffer,', 'cta.bar.s_ready.wait_warp(stage,')),
]

# Of what is there with two S alone.
ROWS_OF_TWO_S = [
    # Pieces that are copies of their own: of tiles of two pieces alone.
    ('the second piece is loaded from the columns of the first',
     (TILE_COPY, LOAD_BOX, FIRST_COLUMNS + LOAD_BOX.replace('coordinates', 'first_columns'))),
    ('the second piece is loaded over the first', (TILE_COPY, LOAD_BOX, LOAD_BOX.replace('(piece,', '(tile,'))),
    ('the second piece is stored to the columns of the first',
     (TILE_COPY, STORE_BOX, FIRST_COLUMNS + STORE_BOX.replace('coordinates', 'first_columns'))),
    ('the first piece is stored twice', (TILE_COPY, STORE_BOX, STORE_BOX.replace('piece)', 'tile)'))),
    ('K is loaded ahead', (LOAD, '    if constexpr (L::scores_ahead) load_k(false);\n  }\n', '    load_k(false);\n  }\n')),
    ('o_ready comes once a block', (MMA, 'L::scores_ahead || values.last()', 'true')),
]

# The ring of tasks of the general kernels, on every architecture.
WRITE_RECORD = '    if (first_lane) tasks.ring.store(TaskRing::slot(number + 1), record);\n'
WAIT_FOR_RECORD_SLOT = '    tasks.ring.empty.wait_warp(TaskRing::slot(number + 1), TaskRing::empty_phase(number + 1));\n'
WRITE_LAST = '        tasks.ring.store_last(TaskRing::slot(number), more ? 0 : 1);\n'
HAND_OUT = '        tasks.ring.full.arrive(TaskRing::slot(number));\n'
HAND_OUT_WRITTEN = '    if (first_lane) tasks.ring.full.arrive(TaskRing::slot(number + 1));\n'
END_OF_WALK = '      if (number_ >= 0 && last()) return false;\n'
GIVE_BACK = '      give_back();\n'
GIVE_BACK_AS_WARP = '      tasks_.ring.empty.arrive_if(TaskRing::slot(number_), threadIdx.x % 32 == 0);\n'
GIVE_BACK_AS_LANE = '      tasks_.ring.empty.arrive(TaskRing::slot(number_));\n'
READ_RECORD = '      task = again();\n'
TAKE_NUMBER = '''      if (first_lane) taken = static_cast<int32_t>(ptx::atom_add_relaxed_gpu(params.general.task_counter, 1u));
'''
CLEAR_COUNTER = '  if (counted && first_lane && taken == max(entries.passed(), grid) - 1) ptx::st_relaxed_gpu(params.general.task_counter, 0u);\n'
ROWS_OF_TASKS = [
    # From the scheduler.
    ('a record is handed out before it is written', (SCHEDULER, HAND_OUT, ''), (SCHEDULER, WRITE_RECORD, HAND_OUT_WRITTEN + WRITE_RECORD)),
    ('a record is handed out before it says whether it is the last', (SCHEDULER, WRITE_LAST + HAND_OUT, HAND_OUT + WRITE_LAST)),
    ('a record is handed out once it is written, and says later whether it is the last',
     (SCHEDULER, HAND_OUT, ''), (SCHEDULER, WRITE_RECORD, WRITE_RECORD + HAND_OUT_WRITTEN)),
    ('a record is handed out twice', (SCHEDULER, HAND_OUT, HAND_OUT + HAND_OUT)),
    ('every lane hands a record out', (SCHEDULER, HAND_OUT + '      }\n', '      }\n  ' + HAND_OUT)),
    ('another lane hands a record out than wrote it',
     (SCHEDULER, HAND_OUT + '      }\n', '      }\n      if (threadIdx.x % 32 == 1) tasks.ring.full.arrive(TaskRing::slot(number));\n')),
    ('every lane writes a record', (SCHEDULER, WRITE_RECORD, WRITE_RECORD.replace('if (first_lane) ', ''))),
    ('the next record is handed out', (SCHEDULER, HAND_OUT, HAND_OUT.replace('number', 'number + 1'))),
    ('the next record says that it is the last', (SCHEDULER, WRITE_LAST, WRITE_LAST.replace('number', 'number + 1'))),
    ('a record is written into the slot before', (SCHEDULER, WRITE_RECORD, WRITE_RECORD.replace('number + 1', 'number'))),
    ('a record is written before its slot is given back',
     (SCHEDULER, WAIT_FOR_RECORD_SLOT + WRITE_RECORD, WRITE_RECORD + WAIT_FOR_RECORD_SLOT)),
    ('the slot of a record is waited for a task late',
     (SCHEDULER, WAIT_FOR_RECORD_SLOT, WAIT_FOR_RECORD_SLOT.replace('number + 1', 'number'))),
    ('the slot of a record is waited for in the first round alone',
     (SCHEDULER, WAIT_FOR_RECORD_SLOT, '    if (number < 2 * kTaskSlots)\n  ' + WAIT_FOR_RECORD_SLOT)),
    ('no record is the last', (SCHEDULER, 'more ? 0 : 1', '0')),
    ('every record is the last', (SCHEDULER, 'more ? 0 : 1', '1')),
    ('a CTA without a task hands nothing out', (SCHEDULER, '    if (number >= 0) {\n', '    if (number < 0 && !more) break;\n    if (number >= 0) {\n')),
    # To the readers, and back.
    ('a record is given back twice, by a lane', (TASK_WALK, GIVE_BACK_AS_LANE, GIVE_BACK_AS_LANE + GIVE_BACK_AS_LANE)),
    ('a record is given back when it has been read once',
     (TASK_WALK, GIVE_BACK, '      if (number_ < 0) give_back();\n'), (TASK_WALK, READ_RECORD, READ_RECORD + GIVE_BACK)),
    ('a record is given back before it is read',
     (TASK_WALK, GIVE_BACK, '      if (number_ < 0) give_back();\n'), (TASK_WALK, READ_RECORD, GIVE_BACK + READ_RECORD)),
    ('a record says whether it is the last when it has been given back', (TASK_WALK, END_OF_WALK + GIVE_BACK, GIVE_BACK + END_OF_WALK)),
    ('the last record is not given back, nor is the one before',
     (TASK_WALK, GIVE_BACK, '      if (number_ < 0 || tasks_.ring.load(TaskRing::slot(number_ + 1)).last == 0) give_back();\n')),
    ('task -1 is not given back', (TASK_WALK, GIVE_BACK, '      if (number_ >= 0) give_back();\n')),
    ('a record is read in the slot before', (TASK_WALK, 'const TaskRecord record = tasks_.ring.load(TaskRing::slot(number_));',
                                             'const TaskRecord record = tasks_.ring.load(TaskRing::slot(number_ - 1));')),
    ('the record of the next task says whether this one is the last',
     (TASK_WALK, 'return tasks_.ring.load(TaskRing::slot(number_)).last', 'return tasks_.ring.load(TaskRing::slot(number_ + 1)).last')),
    ('a record is waited for in the slot before', (TASK_WALK, 'wait_warp(slot, phase)', 'wait_warp(TaskRing::slot(number_ - 1), phase)'),
     (TASK_WALK, 'full.wait(slot, phase)', 'full.wait(TaskRing::slot(number_ - 1), phase)')),
    # Phases.
    ('the phase of a record never turns', (TASK_RING, 'return static_cast<uint32_t>(number) / kTaskSlots % 2;', 'return 0;')),
    ('the phase of a record turns with each task', (TASK_RING, '/ kTaskSlots % 2', '% 2')),
    ('the phase of a record turns a task early', (TASK_RING, 'static_cast<uint32_t>(number) / kTaskSlots', 'static_cast<uint32_t>(number + 1) / kTaskSlots')),
    ('the phase of an empty slot leaves out task -1', (TASK_RING, 'return full_phase(number + 1) ^ 1;', 'return full_phase(number) ^ 1;')),
    ('the phase of an empty slot is that of a full one', (TASK_RING, 'return full_phase(number + 1) ^ 1;', 'return full_phase(number + 1);')),
    # The counter.
    ('every lane takes a number', (SCHEDULER, TAKE_NUMBER, TAKE_NUMBER.replace('if (first_lane) ', ''))),
    ('the lanes do not learn the number', (SCHEDULER, '      taken = __shfl_sync(0xffffffffu, taken, 0);\n', '')),
    ('a number is read, and the next one written',
     (SCHEDULER, TAKE_NUMBER, '''      if (first_lane) {
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(taken) : "l"(params.general.task_counter) : "memory");
        ptx::st_relaxed_gpu(params.general.task_counter, static_cast<uint32_t>(taken) + 1);
      }
''')),
    ('the first task too has a number from the counter', (SCHEDULER, 'if (wave++ != 0) {', '{\n      ++wave;')),
    ('the counter goes up by two', (SCHEDULER, 'task_counter, 1u)', 'task_counter, 2u)')),
    ('the counter is not cleared', (SCHEDULER, CLEAR_COUNTER, '')),
    ('every CTA clears the counter', (SCHEDULER, ' && taken == max(entries.passed(), grid) - 1)', ')')),
    ('the first CTA that has asked in vain clears the counter',
     (SCHEDULER, 'max(entries.passed(), grid) - 1)', 'max(entries.passed() - grid, 0))')),
    ('the last CTA but one clears the counter', (SCHEDULER, 'max(entries.passed(), grid) - 1', 'max(entries.passed(), grid) - 2')),
    ('the counter is cleared for as many tasks as CTAs at least, or not at all', (SCHEDULER, 'max(entries.passed(), grid) - 1', 'entries.passed() - 1')),
    ('the counter is cleared before the last question',
     (SCHEDULER, CLEAR_COUNTER, ''),
     (SCHEDULER, TAKE_NUMBER, TAKE_NUMBER + '      if (first_lane && taken + grid == entries.passed()) ptx::st_relaxed_gpu(params.general.task_counter, 0u);\n')),
]

ROWS_OF_BLACKWELL_TASKS = [
    ('a record is given back twice, by a warp', (TASK_WALK, GIVE_BACK_AS_WARP, GIVE_BACK_AS_WARP + GIVE_BACK_AS_WARP)),
    ('a record is given back by every lane of a warp', (TASK_WALK, ', threadIdx.x % 32 == 0)', ', true)')),
    ('correction reads the ring as single lanes', (CORRECTION, 'TaskWalk<config, Reader::warp>', 'TaskWalk<config, Reader::lane>')),
    ('softmax reads the ring as single lanes', (SOFTMAX, 'TaskWalk<config, Reader::warp>', 'TaskWalk<config, Reader::lane>')),
    ('the scores read the ring as single lanes', (MMA, 'BlockWalk<config, Reader::warp> scores', 'BlockWalk<config, Reader::lane> scores')),
    ('the values read the ring as single lanes', (MMA, 'BlockWalk<config, Reader::warp> values', 'BlockWalk<config, Reader::lane> values')),
    ('load reads the ring as a warp', (LOAD, 'BlockWalk<config, Reader::lane>', 'BlockWalk<config, Reader::warp>')),
    ('store reads the ring as a warp', (STORE, 'TaskWalk<config, Reader::lane>', 'TaskWalk<config, Reader::warp>')),
]

STORE_ENTRY = '''    if constexpr (config.general())
      cta.store_entry(q.index, {task.seq_q, task.seq_kv, task.first_row, walk.last() ? 1 : 0, blocks.begin, {}});
'''
WAIT_FOR_Q_SLOTS = '''#pragma unroll 1
    for (int i = 0; i < L::consumers; ++i) cta.bar.q_empty.wait(q.index * L::consumers + i, q.phase);
'''
BLOCKS_OF_TASK = '    const BlockRegions blocks = visited_blocks<config>(mask_of<config>(params), task);\n'
ANNOUNCE_Q = '      cta.bar.q_full.arrive_expect_tx(stage, config.q_tile_bytes());\n'
ASK_FOR_MORE = '      if constexpr (config.general()) more = entry.last == 0;\n'
RETURN_Q = '      cta.bar.q_empty.arrive(stage);\n'
ROWS_OF_HOPPER_TASKS = [
    ('the barrier of a record wants two arrivals', (HOPPER_BARRIERS, 'ROW(task_full, "task.full", counted, task_slots(config), 1,',
                                                   'ROW(task_full, "task.full", counted, task_slots(config), 2,')),
    ('the barrier of an empty slot wants one arrival', (HOPPER_BARRIERS, 'ROW(task_empty, "task.empty", counted, task_slots(config), 2,',
                                                       'ROW(task_empty, "task.empty", counted, task_slots(config), 1,')),
    ('the barrier of an empty slot wants three arrivals', (HOPPER_BARRIERS, 'ROW(task_empty, "task.empty", counted, task_slots(config), 2,',
                                                         'ROW(task_empty, "task.empty", counted, task_slots(config), 3,')),
    ('the barriers of the ring are not initialised',
     (HOPPER_CTA, 'i != kBarrierStages<config, BarrierId::id>;', 'i != (kBarrierArrivals<config, BarrierId::id> == 2 ? 0 : kBarrierStages<config, BarrierId::id>);')),
    # The record of the entry, which goes on to consumers and store.
    ('the entry is written before its slot is empty', (HOPPER_QUERY, STORE_ENTRY, ''), (HOPPER_QUERY, WAIT_FOR_Q_SLOTS + BLOCKS_OF_TASK, BLOCKS_OF_TASK + STORE_ENTRY + WAIT_FOR_Q_SLOTS)),
    ('the entry is written after Q is announced', (HOPPER_QUERY, STORE_ENTRY, ''), (HOPPER_QUERY, ANNOUNCE_Q, ANNOUNCE_Q + STORE_ENTRY)),
    ('the entry is written when Q of the first warpgroup is announced',
     (HOPPER_QUERY, STORE_ENTRY, ''), (HOPPER_QUERY, ANNOUNCE_Q, '      if (i == 1) {\n' + STORE_ENTRY + '      }\n' + ANNOUNCE_Q)),
    ('the entry is written into the other slot', (HOPPER_QUERY, 'cta.store_entry(q.index,', 'cta.store_entry(1 - q.index,')),
    ('the store warp asks for more when it has returned the slot',
     (HOPPER_STORE, ASK_FOR_MORE, ''), (HOPPER_STORE, RETURN_Q, RETURN_Q + '      if constexpr (config.general()) more = cta.load_entry(q.index).last == 0;\n')),
    ('the store warp reads the entry before O is there',
     (HOPPER_STORE, '      const auto entry = cta.load_entry(q.index);\n', ''),
     (HOPPER_STORE, '      cta.bar.o_full.wait(stage, q.phase);\n', '      const auto entry = cta.load_entry(q.index);\n      cta.bar.o_full.wait(stage, q.phase);\n')),
    ('the store warp reads the entry of the other slot', (HOPPER_STORE, 'cta.load_entry(q.index)', 'cta.load_entry(1 - q.index)')),
    ('a consumer asks the other slot for more', (HOPPER_CONSUMER, 'cta.load_entry(q.index).last', 'cta.load_entry(1 - q.index).last')),
    ('a consumer asks for more before Q of the task has landed',
     (HOPPER_CONSUMER, '    q.advance();\n    wait_q();\n', '    q.advance();\n    more = cta.load_entry(q.index).last == 0;\n    wait_q();\n'),
     (HOPPER_CONSUMER, 'return __shfl_sync(0xffffffffu, cta.load_entry(q.index).last, 0) == 0;',
      'return task_number++ == 0 ? cta.load_entry(q.index).last == 0 : more;'),
     (HOPPER_CONSUMER, '  int32_t next_wave = 1;\n', '  int32_t next_wave = 1, task_number = 0;\n')),
    ('the rows of a task are finished by the record of the next',
     (HOPPER_CONSUMER, 'cta.load_entry(q_slot)', 'cta.load_entry(1 - q_slot)')),
    ('the head of a row is that of the next task', (HOPPER_CONSUMER, 'cta.load_task(q_slot)', 'cta.load_task(1 - q_slot)')),
]

# (architecture, general kernels?, head dimension, rows). Of Blackwell's others, three S fit beside an O of 64 columns, two beside one
# of 128. Of general kernels, what follows from the ring of tasks, which is the same for all head dimensions.
TABLES = [
    ('blackwell', False, 64, ROWS + ROWS_OF_THREE_S),
    ('blackwell', False, 128, ROWS + ROWS_OF_TWO_S),
    ('blackwell', True, 64, ROWS_OF_TASKS + ROWS_OF_BLACKWELL_TASKS),
    ('hopper', True, 64, ROWS_OF_TASKS + ROWS_OF_HOPPER_TASKS),
]


# As mutation_test.cpp names it.
def folder_of(architecture, general, head_dim):
    return '%s%s-%d' % (architecture, '-general' if general else '', head_dim)


def mutate(folder, name, edits):
    for file, old, new in edits:
        path = os.path.join(folder, 'asm/attention', file)
        with open(path) as source:
            text = source.read()
        if text.count(old) != 1:
            raise ValueError('source mutant "%s": asm/attention/%s holds this %d times, and must once:\n%s'
                             % (name, file, text.count(old), old))
        with open(path, 'w') as source:
            source.write(text.replace(old, new))


def rewrite(path, *replacements):
    with open(path) as source:
        text = source.read()
    for pattern, new in replacements:
        text, count = re.subn(pattern, new, text, flags=re.M)
        if count == 0:
            raise ValueError('%s holds nothing like %s' % (path, pattern))
    with open(path, 'w') as source:
        source.write(text)


def build(nvcc, options, targets, root, output, table, row):
    architecture, general, head_dim = table[:3]
    name, edits = row[0], row[1:]
    folder = os.path.join(output, 'tree', folder_of(*table[:3]), name)
    shutil.copytree(os.path.join(root, 'asm'), os.path.join(folder, 'asm'))
    mutate(folder, name, edits)
    # The test launches these of the entries; of Blackwell's, those with exponentials by polynomial, as on compute capability 10.0.
    masks = 'band' if general else '(?:full|causal)'
    others = r'^  ROW\((?!fa4_forward_f16_\w+, +f16, +%s, +%d, +%d\)).*\n' % (masks, head_dim, head_dim)
    rewrite(os.path.join(folder, 'asm/attention/specialisations.h'), (others, ''), (r'\) *\\\n(?!  ROW)', ')\n'))
    main = os.path.join(folder, 'asm/attention', architecture, 'attention.cu')
    if architecture == 'blackwell':
        rewrite(main, (r'^FA4_SPECIALISATIONS\(FA4_ENTRY\)\n', ''))
    ptx = os.path.join(output, folder_of(*table[:3]), name + '.ptx')
    result = subprocess.run([nvcc, '-ptx', '-o', ptx, '-arch=' + targets[architecture]] + options + [main],
                            capture_output=True, text=True)
    if result.returncode != 0:
        raise ValueError('source mutant "%s" of %s does not compile:\n%s' % (name, folder_of(*table[:3]), result.stderr))


def main():
    nvcc, root, output, stamp, depfile = sys.argv[1:6]
    targets = dict(target.split('=') for target in sys.argv[6].split(','))
    options = sys.argv[7:]
    shutil.rmtree(output, ignore_errors=True)
    mutants = [(table, row) for table in TABLES for row in table[3]]
    for table in TABLES:
        os.makedirs(os.path.join(output, folder_of(*table[:3])))
        if len({row[0] for row in table[3]}) != len(table[3]):
            raise ValueError('two source mutants have the same name')
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(build, nvcc, options, targets, root, output, *mutant) for mutant in mutants]:
            done.result()
    shutil.rmtree(os.path.join(output, 'tree'))
    sources = glob.glob(os.path.join(root, 'asm/**/*.h'), recursive=True) + glob.glob(os.path.join(root, 'asm/**/*.cu*'), recursive=True)
    with open(depfile, 'w') as file:
        file.write('%s: %s\n' % (stamp, ' '.join(sources)))
    with open(stamp, 'w') as file:
        file.write('%d source mutants\n' % len(mutants))


try:
    main()
except ValueError as error:
    sys.exit(str(error))
